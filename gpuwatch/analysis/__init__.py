"""gpuwatch.analysis"""
