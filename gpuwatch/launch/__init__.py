"""A launch: grid, block, arguments and buffers, captured from the program's own main()."""
