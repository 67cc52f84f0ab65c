#!/usr/bin/python3
"""Runs a program whose setpriority(2) is answered with an error number: setpriority.py ERRNO PROGRAM ARGUMENT ..."""
import ctypes
import os
import platform
import struct
import sys

NUMBERS = {"x86_64": 141, "aarch64": 140}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
RET_ERRNO, RET_ALLOW = 0x00050000, 0x7FFF0000


class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


# Load the number of the call; compare; answer, or allow.
number = NUMBERS[platform.machine()]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, RET_ERRNO | int(sys.argv[1])), (0x06, 0, 0, RET_ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
libc = ctypes.CDLL(None, use_errno=True)
for arguments in (
    (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
    (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(Program(len(steps), ctypes.addressof(code))), 0, 0),
):
    if libc.prctl(*arguments):
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[2], sys.argv[2:])
