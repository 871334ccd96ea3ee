"""Programs that a random generator writes: the search comes to all that a search without any reduction comes to.

commands.py     what a program may send, and the setups
families.py     kinds of programs: which commands, how many workers, which faults
writer.py       writes the programs of a family, from a seed
interpreter.py  runs a program, with the clients of clients.py; operations.py: as an operation of a worker
    memory.py       what it remembers, and tells at its end
comparison.py   searches the same programs in two ways, and compares the ends

python -m tests.lost_update_lab.differential "clocks and rows" 17      compares one case
"""
