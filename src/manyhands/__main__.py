"""`python -m manyhands`: the command line where the script is not on the path."""

from manyhands.cli import main

if __name__ == "__main__":
    main()
