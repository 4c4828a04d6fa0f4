#!/usr/bin/env python3
"""Writes src/spirv/names.inc: numbers and names of capabilities, and of opcodes that op_table.inc lacks, from the
spirv-headers package.

Usage: tools/spirv_names.py [spirv.core.grammar.json] > names.inc, which then takes the place of src/spirv/names.inc
Only messages use these names, so a newer grammar than the build's headers is fine.
"""
import json
import pathlib
import re
import sys
import textwrap

path = sys.argv[1] if len(sys.argv) > 1 else '/usr/include/spirv/unified1/spirv.core.grammar.json'
grammar = json.load(open(path))
table = (pathlib.Path(__file__).resolve().parent.parent / 'src/spirv/op_table.inc').read_text()
taken = {int(number) for number in re.findall(r'^OP\((\d+),', table, re.M)}


def rows(macro, pairs):
    names = {}
    for number, name in pairs:
        known = names.get(number)
        if known is None or len(name) < len(known):  # of several spellings the shortest: it has no vendor's suffix
            names[number] = name
    entries = ' '.join('%s(%d,~%s)' % (macro, number, names[number]) for number in sorted(names))
    print(textwrap.fill(entries, 120, break_long_words=False, break_on_hyphens=False).replace('~', ' '))


print('/* Made by tools/spirv_names.py from the SPIR-V grammar %d.%d, revision %d: names of the capabilities, and of the opcodes that\n'
      ' * op_table.inc does not have; sorted by number. */' % (grammar['major_version'], grammar['minor_version'], grammar['revision']))
print('#ifdef NAME_OP')
rows('NAME_OP', ((i['opcode'], i['opname'][2:]) for i in grammar['instructions'] if i['opcode'] not in taken))
print('#endif\n#ifdef NAME_CAP')
kinds = {kind['kind']: kind.get('enumerants', []) for kind in grammar['operand_kinds']}
rows('NAME_CAP', ((e['value'], e['enumerant']) for e in kinds['Capability']))
print('#endif')
