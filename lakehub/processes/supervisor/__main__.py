from __future__ import annotations

import sys

from lakehub.processes.supervisor.run import main

sys.exit(main())
