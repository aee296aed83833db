/* ---- telling: app threads only append, the worker sends. The caller holds the lock. */

static void wake(void) {
  const uint64_t one = 1;
  if (write(wake_fd, &one, sizeof one) < 0 && errno != EAGAIN) dead = true;
}

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...) {
  va_list values;
  va_start(values, format);
  char *text = NULL;
  const int size = vasprintf(&text, format, values);
  va_end(values);
  if (size < 0) return;
  if (outgoing_used + (size_t)size + 1 > outgoing_room) {
    const size_t room = 2 * (outgoing_used + (size_t)size + 4096);
    char *larger = realloc(outgoing, room);
    if (larger == NULL) {
      free(text);
      return;
    }
    outgoing = larger, outgoing_room = room;
  }
  memcpy(outgoing + outgoing_used, text, (size_t)size);
  outgoing[outgoing_used + (size_t)size] = '\n';
  outgoing_used += (size_t)size + 1;
  free(text);
  wake();
}

static const char *words_of(CUresult status) {
  const char *name = NULL;
  return cuGetErrorName(status, &name) == CUDA_SUCCESS && name != NULL ? name : "unknown error";
}
