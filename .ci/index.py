"""Reads what the compiler recorded of a debug build: which file declares what, and where it is used.

The index store lies beside the build's products, and the library that reads it comes with the Swift toolchain. Its C API
is described in the toolchain's usr/local/include/indexstore/indexstore.h.
"""

import collections
import ctypes
import json
import os
import subprocess

# Roles of an occurrence, and of the relation of an occurrence to another symbol.
DECLARATION, DEFINITION, REFERENCE, READ, WRITE, CALL = (1 << bit for bit in range(6))
IMPLICIT = 1 << 8
CHILD_OF, BASE_OF, OVERRIDE_OF, RECEIVED_BY, CALLED_BY, EXTENDED_BY, ACCESSOR_OF, CONTAINED_BY = (
    1 << bit for bit in range(9, 17))

KINDS = {
    1: "module", 5: "enum", 6: "struct", 7: "class", 8: "protocol", 9: "extension", 11: "typealias", 12: "function",
    13: "variable", 14: "field", 15: "case", 16: "method", 17: "class method", 18: "static method", 19: "property",
    20: "class property", 21: "static property", 22: "initializer", 23: "deinitializer", 25: "parameter",
}
# Subkinds that say more than their kind.
SUBKINDS = {1008: "operator", 1009: "operator", 1010: "operator", 1011: "subscript", 1012: "associated type",
            1013: "type parameter"}
ACCESSORS = {3, 4, 1000, 1001, 1002, 1003, 1014, 1015, 1016, 1017, 1018}

# `relations` is a list of pairs: roles, symbol.
Occurrence = collections.namedtuple("Occurrence", "symbol line column roles relations")


class Symbol:
    """A declaration; `usr` identifies it in the whole program."""

    __slots__ = ("usr", "name", "kind", "accessor", "properties")

    def __init__(self, usr, name, kind, subkind, properties):
        self.usr, self.name, self.properties = usr, name, properties
        self.kind = SUBKINDS.get(subkind) or KINDS.get(kind, f"kind {kind}")
        self.accessor = subkind in ACCESSORS

    def __repr__(self):
        return f"{self.kind} {self.name}"


class _String(ctypes.Structure):
    _fields_ = [("data", ctypes.POINTER(ctypes.c_char)), ("length", ctypes.c_size_t)]

    def text(self):
        return ctypes.string_at(self.data, self.length).decode("utf-8", "replace") if self.length else ""


_APPLY = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p)
_APPLY_STRING = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, _String)
_UNIT_DEPENDS_ON_RECORD = 2


class IndexStore:
    """The index store of one build."""

    def __init__(self, path, library=None):
        """Raises OSError where the store or the toolchain's library is missing."""
        if not os.path.isdir(path):
            raise FileNotFoundError(f"no index store at {path}; build in debug first")
        self.library = _load(library or toolchain_library())
        error = ctypes.c_void_p()
        self.store = self.library.store_create(os.fsencode(path), ctypes.byref(error))
        if not self.store:
            raise OSError(self._reason(error))
        self.symbols = {}

    def files(self, root):
        """The occurrences in each Swift file below the folder `root`, by path.

        A file that was removed, or written after it was compiled, is left out. Raises OSError where a unit or record
        cannot be read.
        """
        newest = {}
        for name in self._unit_names():
            found = self._unit(name)
            if found is None:
                continue
            path, modified, records = found
            if path.startswith(root.rstrip("/") + "/") and os.path.exists(path):
                if path not in newest or newest[path][0] < modified:
                    newest[path] = (modified, records)
        return {path: [each for record in records for each in self._occurrences(record)]
                for path, (modified, records) in sorted(newest.items()) if modified >= os.stat(path).st_mtime_ns}

    def _reason(self, error):
        try:
            return self.library.error_get_description(error).decode("utf-8", "replace")
        finally:
            self.library.error_dispose(error)

    def _unit_names(self):
        names = []

        def take(_, name):
            names.append(name.text())
            return True

        self.library.store_units_apply_f(self.store, 0, None, _APPLY_STRING(take))
        return names

    def _unit(self, name):
        """Main file, nanoseconds since 1970 and records of a Swift unit; None for a module's unit."""
        library, error = self.library, ctypes.c_void_p()
        unit = library.unit_reader_create(self.store, name.encode(), ctypes.byref(error))
        if not unit:
            raise OSError(f"unit {name}: {self._reason(error)}")
        try:
            if not library.unit_reader_has_main_file(unit):
                return None
            path = library.unit_reader_get_main_file(unit).text()
            path = os.path.normpath(os.path.join(library.unit_reader_get_working_dir(unit).text(), path))
            seconds, nanoseconds = ctypes.c_int64(), ctypes.c_int64()
            library.unit_reader_get_modification_time(unit, ctypes.byref(seconds), ctypes.byref(nanoseconds))
            records = []

            def take(_, dependency):
                # A unit names the records of the modules that it imports too, those without a file.
                if (library.unit_dependency_get_kind(dependency) == _UNIT_DEPENDS_ON_RECORD
                        and library.unit_dependency_get_filepath(dependency).text() == path):
                    records.append(library.unit_dependency_get_name(dependency).text())
                return True

            library.unit_reader_dependencies_apply_f(unit, None, _APPLY(take))
            return path, seconds.value * 1_000_000_000 + nanoseconds.value, records
        finally:
            library.unit_reader_dispose(unit)

    def _occurrences(self, record):
        library, error = self.library, ctypes.c_void_p()
        reader = library.record_reader_create(self.store, record.encode(), ctypes.byref(error))
        if not reader:
            raise OSError(f"record {record}: {self._reason(error)}")
        occurrences, relations = [], []

        def take_relation(_, relation):
            symbol = self._symbol(library.symbol_relation_get_symbol(relation))
            relations.append((library.symbol_relation_get_roles(relation), symbol))
            return True

        applier = _APPLY(take_relation)

        def take(_, occurrence):
            line, column = ctypes.c_uint(), ctypes.c_uint()
            library.occurrence_get_line_col(occurrence, ctypes.byref(line), ctypes.byref(column))
            relations.clear()
            library.occurrence_relations_apply_f(occurrence, None, applier)
            occurrences.append(Occurrence(
                self._symbol(library.occurrence_get_symbol(occurrence)), line.value, column.value,
                library.occurrence_get_roles(occurrence), list(relations)))
            return True

        library.record_reader_occurrences_apply_f(reader, None, _APPLY(take))
        library.record_reader_dispose(reader)
        return occurrences

    def _symbol(self, handle):
        library = self.library
        usr = library.symbol_get_usr(handle).text()
        if usr not in self.symbols:
            self.symbols[usr] = Symbol(
                usr, library.symbol_get_name(handle).text(), library.symbol_get_kind(handle),
                library.symbol_get_subkind(handle), library.symbol_get_properties(handle))
        return self.symbols[usr]


def toolchain_library():
    """The path of libIndexStore.so of the Swift toolchain in PATH."""
    described = subprocess.run(["swift", "-print-target-info"], check=True, stdout=subprocess.PIPE).stdout
    resources = json.loads(described)["paths"]["runtimeResourcePath"]
    return os.path.join(os.path.dirname(resources), "libIndexStore.so")


class _load:
    """The library's functions that are used here, without their prefix."""

    def __init__(self, path):
        library = ctypes.CDLL(path)
        handle, error = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
        integers, text, none = ctypes.POINTER(ctypes.c_int64), ctypes.c_char_p, None
        unsigned = ctypes.POINTER(ctypes.c_uint)
        for name, result, *arguments in [
            ("error_get_description", text, handle),
            ("error_dispose", none, handle),
            ("store_create", handle, text, error),
            ("store_units_apply_f", ctypes.c_bool, handle, ctypes.c_uint, handle, _APPLY_STRING),
            ("unit_reader_create", handle, handle, text, error),
            ("unit_reader_dispose", none, handle),
            ("unit_reader_has_main_file", ctypes.c_bool, handle),
            ("unit_reader_get_main_file", _String, handle),
            ("unit_reader_get_working_dir", _String, handle),
            ("unit_reader_get_modification_time", none, handle, integers, integers),
            ("unit_reader_dependencies_apply_f", ctypes.c_bool, handle, handle, _APPLY),
            ("unit_dependency_get_kind", ctypes.c_int, handle),
            ("unit_dependency_get_name", _String, handle),
            ("unit_dependency_get_filepath", _String, handle),
            ("record_reader_create", handle, handle, text, error),
            ("record_reader_dispose", none, handle),
            ("record_reader_occurrences_apply_f", ctypes.c_bool, handle, handle, _APPLY),
            ("occurrence_get_symbol", handle, handle),
            ("occurrence_get_roles", ctypes.c_uint64, handle),
            ("occurrence_get_line_col", none, handle, unsigned, unsigned),
            ("occurrence_relations_apply_f", ctypes.c_bool, handle, handle, _APPLY),
            ("symbol_relation_get_roles", ctypes.c_uint64, handle),
            ("symbol_relation_get_symbol", handle, handle),
            ("symbol_get_usr", _String, handle),
            ("symbol_get_name", _String, handle),
            ("symbol_get_kind", ctypes.c_int, handle),
            ("symbol_get_subkind", ctypes.c_int, handle),
            ("symbol_get_properties", ctypes.c_uint64, handle),
        ]:
            function = getattr(library, "indexstore_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
