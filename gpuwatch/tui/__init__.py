"""gpuwatch.tui"""
