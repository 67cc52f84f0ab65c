"""Finds folders of Sources that depend on each other in both directions, from the index of the debug build.

    python3 .ci/cycles.py     after `swift build`

A folder is a directory of a target: a file belongs to the directory that it lies in and to no other, and the files in the
target's own directory form the folder ".". So Session and Session/TLS are two folders, and a pair of them counts like any
other. Folder A depends on folder B where a file in A names a declaration of a file in B, or a member of one. What the
compiler infers without a name in the source is no dependency, and neither is a protocol's witness on the requirement.

Printed are each target's folders and the pairs, cheapest first. The cost of a pair is the least number of declarations that
have to leave their folders to end one of its directions: functions, types and members that use the other folder, or the
declarations at file scope there that they use. What moves takes its own dependencies with it, so the real number can be
higher. The cheaper direction is printed first.

Exit 1 where there is a pair, 2 where the index cannot be read.
"""

import argparse
import collections
import os
import sys

import index

HERE = os.path.dirname(os.path.abspath(__file__))

# The file `file` uses the declaration `name`.
Use = collections.namedtuple("Use", "file name")


class Graph:
    """The folders of one target, and which of them use which."""

    def __init__(self):
        self.folders = set()
        self.uses = collections.defaultdict(set)  # (folder, folder) → uses
        self.moves = collections.defaultdict(set)  # (folder, folder) → what uses, what is used: one of the two moves

    def pairs(self):
        """The pairs that depend on each other, cheapest first: (cost, folder, folder); the first is to lose its uses."""
        pairs = []
        for one, other in self.uses:
            if one < other and (other, one) in self.uses:
                directions = [(self.cost(*key), len(self.names(*key)), *key) for key in ((one, other), (other, one))]
                pairs.append(min(directions))
        return [(cost, one, other) for cost, _, one, other in sorted(pairs)]

    def names(self, one, other):
        """The declarations of `other` that `one` uses."""
        return {use.name for use in self.uses[one, other]}

    def cost(self, one, other):
        """How many declarations have to move so that `one` uses `other` no more.

        Each use joins a declaration with the one that it needs, and one of the two has to go: a vertex cover, which in a
        graph of two sides is as large as the largest matching (König).
        """
        needs = collections.defaultdict(list)
        for user, used in sorted(self.moves[one, other]):
            needs[user].append(used)
        taken = {}

        def match(user, tried):
            for used in needs[user]:
                if used not in tried:
                    tried.add(used)
                    if used not in taken or match(taken[used], tried):
                        taken[used] = user
                        return True
            return False

        return sum(match(user, set()) for user in needs)


class Declarations:
    """Where the declarations of Sources stand."""

    def __init__(self, files):
        self.place, self.parent, self.symbol, self.outline = {}, {}, {}, {}
        for path, occurrences in files.items():
            for occurrence in occurrences:
                if not occurrence.roles & (index.DECLARATION | index.DEFINITION):
                    continue
                usr = occurrence.symbol.usr
                self.symbol[usr] = occurrence.symbol
                self.place[usr] = (path, occurrence.line, occurrence.column)
                for roles, related in occurrence.relations:
                    if roles & (index.CHILD_OF | index.ACCESSOR_OF):
                        self.parent[usr] = related.usr
        for usr, (path, line, column) in self.place.items():
            if usr not in self.parent:
                self.outline.setdefault(path, []).append((line, column, usr))
        for places in self.outline.values():
            places.sort()

    def outermost(self, usr, depth=0):
        """The declaration at file scope that `usr` stands in; with depth 1 the member of that one."""
        chain = [usr]
        while chain[0] in self.parent:
            chain.insert(0, self.parent[chain[0]])
        return chain[min(depth, len(chain) - 1)]

    def user(self, path, occurrence):
        """The function, type or member in which a use stands."""
        for roles, related in occurrence.relations:
            if roles & (index.CONTAINED_BY | index.CALLED_BY | index.BASE_OF | index.EXTENDED_BY | index.CHILD_OF):
                user = self.outermost(related.usr, depth=1)
                if self.place.get(user, ("",))[0] == path:
                    return user
        # The type of an enum case's payload names no container.
        place = (occurrence.line, occurrence.column)
        before = [usr for *start, usr in self.outline.get(path, []) if tuple(start) <= place]
        return before[-1] if before else path

    def title(self, usr):
        """The declaration's name with those of the types around it."""
        names = []
        while usr is not None:
            names.insert(0, self.symbol[usr].name)
            usr = self.parent.get(usr)
        return ".".join(names)


def graphs(files, sources):
    """The graph of each target below the folder `sources`, by name."""
    declarations = Declarations(files)
    graphs = collections.defaultdict(Graph)
    for path, occurrences in files.items():
        target, folder, name = split(path, sources)
        graphs[target].folders.add(folder)
        for occurrence in occurrences:
            usr = occurrence.symbol.usr
            if not occurrence.roles & index.REFERENCE or occurrence.symbol.accessor or usr not in declarations.place:
                continue
            place = declarations.place[usr][0]
            other_target, other_folder, _ = split(place, sources)
            if other_target != target or other_folder == folder:
                continue
            key = (folder, other_folder)
            graphs[target].moves[key].add((declarations.user(path, occurrence), declarations.outermost(usr)))
            graphs[target].uses[key].add(Use(name, declarations.title(usr)))
    return graphs


def split(path, sources):
    """Target, folder and file name of a path."""
    target, *folders, name = os.path.relpath(path, sources).split(os.sep)
    return target, "/".join(folders) or ".", name


def causes(graph, one, other):
    """A line for each file of `one`: what of `other` it uses."""
    by_file = collections.defaultdict(set)
    for use in graph.uses[one, other]:
        by_file[use.file].add(use.name)
    count = len(graph.names(one, other))
    yield f"  {one} uses {count} of {other}'s declarations ({graph.cost(one, other)} to move):"
    for file, names in sorted(by_file.items()):
        yield f"    {file}: {', '.join(sorted(names))}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sources", default=os.path.join(HERE, "..", "Sources"), help="folder of the targets")
    parser.add_argument("--store", default=os.path.join(HERE, "..", ".build", "debug", "index", "store"),
                        help="index store of the debug build")
    arguments = parser.parse_args()

    sources = os.path.realpath(arguments.sources)
    files = index.IndexStore(arguments.store).files(sources)
    missing = sorted(find_sources(sources) - set(files))
    if missing:
        others = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        print(f"cycles: not in the index, build in debug first: {' '.join(missing[:3])}{others}", file=sys.stderr)
        return 2

    found = 0
    for target, graph in sorted(graphs(files, sources).items()):
        pairs = graph.pairs()
        print(f"{target}: {' '.join(sorted(graph.folders))}")
        for cost, one, other in pairs:
            found += 1
            print(f" {target}: {one} and {other} depend on each other, {cost} to move")
            print("\n".join([*causes(graph, one, other), *causes(graph, other, one)]))
    print(f"cycles: {found} pairs of folders depend on each other")
    return 1 if found else 0


def find_sources(folder):
    """The Swift files below a folder."""
    return {os.path.join(path, name) for path, _, names in os.walk(folder) for name in names if name.endswith(".swift")}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError) as error:
        print(f"cycles: {error}", file=sys.stderr)
        sys.exit(2)
