"""PTX text to a lossless model and back; instruction tables; basic blocks and liveness."""
