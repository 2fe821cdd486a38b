"""What lines of one program mean: a module a program."""
