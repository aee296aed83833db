/* ---- contexts and devices */

static uint32_t device_of(CUcontext context) {
  for (uint32_t i = 0; i < context_count; i++)
    if (contexts[i].context == context) return contexts[i].device;
  CUdevice device = 0;
  if (cuCtxGetDevice(&device) != CUDA_SUCCESS) return 0;
  bool told = false;
  for (uint32_t i = 0; i < context_count; i++) told |= contexts[i].device == (uint32_t)device;
  if (context_count < 64) {
    contexts[context_count].context = context;
    contexts[context_count++].device = (uint32_t)device;
  }
  if (told) return (uint32_t)device;
  static const CUdevice_attribute asked[] = {
      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
      CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
      CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
      CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
      CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
      CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
      CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
      CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
  };
  enum { ASKED = sizeof asked / sizeof *asked };
  int got[ASKED] = {0};
  for (int i = 0; i < ASKED; i++) (void)cuDeviceGetAttribute(&got[i], asked[i], device);
  char name[128] = "";
  (void)cuDeviceGetName(name, sizeof name, device);
  tell("device %d %d %d %d %d %d %d %d %d %d %s", device, got[0], got[1], got[2], got[3], got[4],
       got[5], got[6], got[7], got[8], name);
  return (uint32_t)device;
}
