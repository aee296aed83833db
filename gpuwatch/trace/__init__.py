"""gpuwatch.trace"""
