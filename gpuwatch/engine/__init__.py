"""gpuwatch.engine"""
