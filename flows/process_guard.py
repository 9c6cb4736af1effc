"""Wrapper script that runs one command, and kills its whole process group when the process that
started the script is gone.

The guard is started as a script, `python process_guard.py COMMAND...`, as the leader of its own
process group. Its standard input is a pipe whose other end the flow holds. The kernel closes that
end however the flow dies, even by SIGKILL, and then the guard kills all processes of the stage.
(Linux's parent-death signal would be sent when the *thread* that forked ends.)
"""

import os
import signal
import subprocess
import sys
import threading


def watch() -> None:
    """Wait until the pipe on standard input is closed, then kill the process group, this process
    included.
    """
    while os.read(0, 4096):
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main() -> int:
    """Run the command and return its exit code, which is 128 + N after signal N."""
    # Own handlers are set, because the command would inherit SIG_IGN. The command handles the
    # signal; the guard only reports the end of the command.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: None)
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    threading.Thread(target=watch, daemon=True).start()
    code = child.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # do not wait for the thread, which still reads
