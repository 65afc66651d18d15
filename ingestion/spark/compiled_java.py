"""Small Java classes of ours, compiled in the JVM and defined beside a class of Hudi, so that both share its package and class loader.

Janino, which Spark brings along, is the compiler: it knows no lambdas, and generics only as decoration.
"""

from __future__ import annotations

from typing import Any


def define_beside(java: Any, neighbour_name: str, source: str, *, marker: str) -> None:
    """Once in each JVM: `marker` names the property that says that it is there. The package of `source` is the neighbour's."""
    if java.java.lang.System.getProperty(marker):
        return
    neighbour = class_of(java, neighbour_name)
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(neighbour.getClassLoader())
    compiler.cook(source)
    handles, compiled = java.java.lang.invoke.MethodHandles, compiler.getBytecodes()
    package = handles.privateLookupIn(neighbour, handles.lookup())
    # Those within others first: the verifier loads what an outer one hands on as what it extends.
    for name in sorted(compiled, reverse=True):
        package.defineClass(compiled[name])
    java.java.lang.System.setProperty(marker, "true")


def class_of(java: Any, name: str) -> Any:
    """The class with this full name. Raises Py4JJavaError where no jar has it."""
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    return java.java.lang.Class.forName(name, True, loader)
