"""JAX; prints a digest of what it gave."""

import hashlib

import jax
import jax.numpy as jnp
import numpy as np

function = jax.jit(lambda x: jnp.sin(x) * 2 + jnp.cumsum(x))
x = jnp.arange(65536.0) / 65536
for _ in range(20):
    y = function(x)
print(hashlib.sha256(np.asarray(y).tobytes()).hexdigest())
