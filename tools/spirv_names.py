#!/usr/bin/env python3
"""Writes src/spirv/names.inc: every opcode's and capability's number and name, from the spirv-headers package.

Usage: tools/spirv_names.py [spirv.core.grammar.json] > src/spirv/names.inc
Only messages use these names, so a newer grammar than the build's headers is fine.
"""
import json
import sys

path = sys.argv[1] if len(sys.argv) > 1 else '/usr/include/spirv/unified1/spirv.core.grammar.json'
grammar = json.load(open(path))


def rows(macro, pairs):
    names = {}
    for number, name in pairs:
        known = names.get(number)
        if known is None or len(name) < len(known):  # of several spellings the shortest: it has no vendor's suffix
            names[number] = name
    for number in sorted(names):
        print('%s(%d, "%s")' % (macro, number, names[number]))


print('/* Made by tools/spirv_names.py from the SPIR-V grammar %d.%d, revision %d; sorted by number. */' %
      (grammar['major_version'], grammar['minor_version'], grammar['revision']))
print('#ifdef OP_NAME')
rows('OP_NAME', ((i['opcode'], i['opname']) for i in grammar['instructions']))
print('#endif\n#ifdef CAPABILITY_NAME')
kinds = {kind['kind']: kind.get('enumerants', []) for kind in grammar['operand_kinds']}
rows('CAPABILITY_NAME', ((e['value'], e['enumerant']) for e in kinds['Capability']))
print('#endif')
