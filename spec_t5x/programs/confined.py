"""The process that a program runs in; `programs.run` starts it as a script.

Before the program starts, the process gives up for good, as Linux lets any
process do, root's included:

- by resource limits: processor time, address space, size of files;
- by Landlock, a ruleset without a rule: making, writing and removing files;
- by a seccomp filter: the calls in `_FORBIDDEN`.

It needs Linux 5.13 or newer, and imports nothing but the standard library.
"""

import ctypes
import json
import math
import os
import resource
import struct
import sys

# Numbers of system calls, by the machine's name.
_FORBIDDEN = {
    "x86_64": {
        "socket": 41,
        "clone": 56,
        "fork": 57,
        "vfork": 58,
        "execve": 59,
        "kill": 62,
        "chmod": 90,
        "fchmod": 91,
        "chown": 92,
        "fchown": 93,
        "lchown": 94,
        "ptrace": 101,
        "rt_sigqueueinfo": 129,
        "setrlimit": 160,
        "tkill": 200,
        "tgkill": 234,
        "fchownat": 260,
        "fchmodat": 268,
        "rt_tgsigqueueinfo": 297,
        "prlimit64": 302,
        "execveat": 322,
        "pidfd_send_signal": 424,
        "io_uring_setup": 425,
        "clone3": 435,
        "fchmodat2": 452,
    },
    "aarch64": {
        "fchmod": 52,
        "fchmodat": 53,
        "fchownat": 54,
        "fchown": 55,
        "ptrace": 117,
        "kill": 129,
        "tkill": 130,
        "tgkill": 131,
        "rt_sigqueueinfo": 138,
        "setrlimit": 164,
        "socket": 198,
        "clone": 220,
        "execve": 221,
        "rt_tgsigqueueinfo": 240,
        "prlimit64": 261,
        "execveat": 281,
        "pidfd_send_signal": 424,
        "io_uring_setup": 425,
        "clone3": 435,
        "fchmodat2": 452,
    },
}
_AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# linux/prctl.h, linux/filter.h, linux/seccomp.h
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_SIGKILL, _EPERM = 9, 1
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_FILTER_MODE, _ALLOW, _ERROR = 2, 0x7FFF0000, 0x00050000
# On x86-64, calls of the x32 interface have numbers from here on.
_X32_BIT = 0x40000000

# linux/landlock.h; the same numbers on all machines.
_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_QUERY_VERSION = 1
_WRITE_FILE, _REMOVE_AND_MAKE, _TRUNCATE = 1 << 1, 0b1_1111_1111_0000, 1 << 14

_VERDICT_BYTES = 1 << 16

_LIBC = ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
  """The result of a C function, or OSError."""
  if result < 0:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))
  return result


def limit_resources(seconds: float, memory_bytes: int) -> None:
  """Limits time, memory and the size of files; dies with the parent."""
  _checked(_LIBC.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0))
  for limit, value in (
      # The parent watches the clock; this is for a parent that died, and a
      # second later, so that it never ends a program before the parent does.
      (resource.RLIMIT_CPU, math.ceil(seconds) + 1),
      (resource.RLIMIT_AS, memory_bytes),
      # No file can be opened for writing, but one is open: the verdict's.
      (resource.RLIMIT_FSIZE, _VERDICT_BYTES),
      (resource.RLIMIT_CORE, 0),
  ):
    resource.setrlimit(limit, (value, value))


def forbid_writing() -> None:
  """Forbids to open files for writing, and to make or remove them."""
  version = _checked(_LIBC.syscall(_CREATE_RULESET, None, 0, _QUERY_VERSION))
  handled = _WRITE_FILE | _REMOVE_AND_MAKE
  if version >= 3:
    handled |= _TRUNCATE
  attributes = struct.pack("Q", handled)
  ruleset = _checked(
      _LIBC.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
  )
  _checked(_LIBC.syscall(_RESTRICT_SELF, ruleset, 0))
  os.close(ruleset)


def forbid_calls() -> None:
  """Makes the forbidden calls fail with EPERM."""
  machine = os.uname().machine
  numbers = list(_FORBIDDEN[machine].values())
  instruction = lambda code, value, yes=0, no=0: struct.pack(
      "HBBI", code, yes, no, value
  )
  # Offsets of `seccomp_data`: the call's number at 0, its interface at 4. A
  # jump counts instructions; all that forbid go to the last one.
  tests = [(_JUMP_AT_LEAST, _X32_BIT), *((_JUMP_EQUAL, n) for n in numbers)]
  program = [
      instruction(_LOAD, 4),
      instruction(_JUMP_EQUAL, _AUDIT_ARCHITECTURES[machine], yes=1),
      instruction(_RETURN, _ERROR | _EPERM),
      instruction(_LOAD, 0),
      *(
          instruction(code, value, yes=len(tests) - place)
          for place, (code, value) in enumerate(tests)
      ),
      instruction(_RETURN, _ALLOW),
      instruction(_RETURN, _ERROR | _EPERM),
  ]
  code = ctypes.create_string_buffer(b"".join(program))
  # struct sock_fprog: the pointer is aligned to eight bytes.
  header = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code))
  _checked(_LIBC.prctl(_PR_SET_SECCOMP, _FILTER_MODE, header, 0, 0))


def main() -> None:
  """Reads the order, confines itself, runs the program, gives the word."""
  order = json.load(sys.stdin)
  verdict, null = os.dup(1), os.open(os.devnull, os.O_RDWR)
  _checked(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
  limit_resources(order["seconds"], order["memory_bytes"])
  forbid_writing()
  forbid_calls()
  os.write(verdict, b"ready\n")
  for standard in range(3):
    os.dup2(null, standard)
  code = compile(order["program"], "<program>", "exec")
  exec(code, {"__name__": "__main__"})
  os.write(verdict, order["word"].encode())


if __name__ == "__main__":
  main()
