"""nvcc and ptxas: found, run, their results cached by content."""
