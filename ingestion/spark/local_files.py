"""Hadoop's file system for this machine's files, without a process for each file that it makes.

Hadoop's own starts `chmod` whenever it makes a file and has no native library, and asks the system five times for each file that it
lists. A commit of a few rows makes some twenty files and lists timelines of hundreds. Here both are one call of the system
each; bytes, checksums and rights are the same.
"""

from __future__ import annotations

import logging
from typing import Any

from py4j.protocol import Py4JError

from ingestion.spark.compiled_java import define_beside

logger = logging.getLogger(__name__)

_NEIGHBOUR = "org.apache.hadoop.fs.LocalFileSystem"
_SOURCE = r"""
package org.apache.hadoop.fs;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.permission.FsPermission;

public class LakehubLocalFileSystem extends LocalFileSystem {
    private static final String CHECKSUM_END = ".crc";
    /** Hudi gives what it writes there a name of its own, which never stands for anything else, and lists it twenty times in a commit. */
    private static final String TIMELINE_END = "/.hoodie/timeline/";
    private static final int MOST_KNOWN = 40000;

    public LakehubLocalFileSystem() {
        super(new Raw());
    }

    /** Whoever asks this JVM for the file system of local files gets it. */
    public static void install(Configuration configuration) throws IOException {
        // The first that is asked for sets up what closes all of them when the JVM ends.
        FileSystem.get(LocalFileSystem.NAME, configuration);
        LakehubLocalFileSystem files = new LakehubLocalFileSystem();
        files.initialize(LocalFileSystem.NAME, configuration);
        FileSystem.addFileSystemForTesting(LocalFileSystem.NAME, configuration, files);
    }

    /** Files of checksums are left out before anything is asked about them, not after. */
    public FileStatus[] listStatus(Path path) throws IOException {
        return ((Raw) getRaw()).list(path, true);
    }

    static final Known KNOWN = new Known();

    /** What was listed of timelines last, of those that were listed last. */
    static class Known {
        private final LinkedHashMap folders = new LinkedHashMap(16, 0.75f, true);
        private int count = 0;

        synchronized Map of(String folder) {
            Map listed = (Map) folders.get(folder);
            return listed == null ? Collections.EMPTY_MAP : listed;
        }

        synchronized void keep(String folder, Map listed) {
            Map before = (Map) folders.put(folder, listed);
            count += listed.size() - (before == null ? 0 : before.size());
            Iterator eldest = folders.values().iterator();
            while (count > MOST_KNOWN && eldest.hasNext()) {
                count -= ((Map) eldest.next()).size();
                eldest.remove();
            }
        }
    }

    static class Raw extends RawLocalFileSystem {
        public FileStatus[] listStatus(Path path) throws IOException {
            return list(path, false);
        }

        FileStatus[] list(Path path, boolean withoutChecksums) throws IOException {
            java.nio.file.Path folder = pathToFile(path).toPath();
            FileStatus status = getFileStatus(path);
            if (!status.isDirectory()) {
                return new FileStatus[] {status};
            }
            URI parent = status.getPath().toUri();
            String prefix = parent.getPath().endsWith("/") ? parent.getPath() : parent.getPath() + "/";
            boolean isTimeline = prefix.endsWith(TIMELINE_END);
            Map known = isTimeline ? KNOWN.of(prefix) : Collections.EMPTY_MAP;
            HashMap listed = new HashMap();
            DirectoryStream entries = open(folder, path);
            try {
                Iterator each = entries.iterator();
                while (each.hasNext()) {
                    java.nio.file.Path file = (java.nio.file.Path) each.next();
                    String name = file.getFileName().toString();
                    if (withoutChecksums && name.startsWith(".") && name.endsWith(CHECKSUM_END)) {
                        continue;
                    }
                    Object before = known.get(name);
                    try {
                        Path entry = before == null ? new Path(parent.getScheme(), parent.getAuthority(), prefix + name) : null;
                        listed.put(name, before == null ? status(file, entry) : before);
                    } catch (FileSystemException e) {
                        // Gone since it was listed; or a link that leads nowhere, or in a circle; or not to be read.
                    }
                }
            } catch (DirectoryIteratorException e) {
                throw e.getCause();
            } finally {
                entries.close();
            }
            if (isTimeline) {
                KNOWN.keep(prefix, listed);
            }
            return (FileStatus[]) listed.values().toArray(new FileStatus[listed.size()]);
        }

        private DirectoryStream open(java.nio.file.Path folder, Path path) throws IOException {
            try {
                return Files.newDirectoryStream(folder);
            } catch (NoSuchFileException e) {
                throw notFound(path);
            }
        }

        public FileStatus getFileStatus(Path path) throws IOException {
            try {
                return status(pathToFile(path).toPath(), makeQualified(path));
            } catch (FileSystemException e) {
                throw notFound(path);
            }
        }

        /** Also for what cannot be looked at, as Hadoop's own does. */
        private FileNotFoundException notFound(Path path) {
            return new FileNotFoundException("File " + path + " does not exist");
        }

        private FileStatus status(java.nio.file.Path file, Path path) throws IOException {
            BasicFileAttributes read = Files.readAttributes(file, BasicFileAttributes.class);
            return new Status(file, read, getDefaultBlockSize(path), path);
        }

        public void setPermission(Path path, FsPermission permission) throws IOException {
            java.nio.file.Path file = pathToFile(path).toPath();
            int kept = Files.isDirectory(file) ? ((Integer) Files.getAttribute(file, "unix:mode")).intValue() & 06000 : 0;
            Files.setAttribute(file, "unix:mode", Integer.valueOf(kept | permission.toShort()));
        }
    }

    /** Owner and rights are read when somebody wants them. */
    static class Status extends FileStatus {
        private transient final java.nio.file.Path file;
        private boolean hasRights;

        Status(java.nio.file.Path file, BasicFileAttributes read, long blockSize, Path path) {
            super(
                read.size(), read.isDirectory(), 1, blockSize,
                read.lastModifiedTime().toMillis(), read.lastAccessTime().toMillis(), null, null, null, path
            );
            this.file = file;
        }

        public FsPermission getPermission() {
            readRights();
            return super.getPermission();
        }

        public String getOwner() {
            readRights();
            return super.getOwner();
        }

        public String getGroup() {
            readRights();
            return super.getGroup();
        }

        public void write(java.io.DataOutput out) throws IOException {
            readRights();
            super.write(out);
        }

        private synchronized void readRights() {
            if (hasRights || file == null) {
                return;
            }
            try {
                PosixFileAttributes rights = (PosixFileAttributes) Files.readAttributes(file, PosixFileAttributes.class);
                setPermission(FsPermission.valueOf("-" + PosixFilePermissions.toString(rights.permissions())));
                setOwner(rights.owner().getName());
                setGroup(rights.group().getName());
                hasRights = true;
            } catch (IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
        }
    }
}
"""


def install(java: Any, hadoop_configuration: Any) -> None:
    """Once in each JVM, before anything asks for a file system: who has asked keeps Hadoop's own. So does a machine that has no rights
    as Unix has them, and a Hadoop that this does not fit: it is slower, and not wrong.
    """
    if not java.java.nio.file.FileSystems.getDefault().supportedFileAttributeViews().contains("unix"):
        return
    try:
        define_beside(java, _NEIGHBOUR, _SOURCE, marker="lakehub.local-files")
        java.org.apache.hadoop.fs.LakehubLocalFileSystem.install(hadoop_configuration)
    except Py4JError:
        logger.warning("Local files are written by Hadoop's own file system, which is slower", exc_info=True)
