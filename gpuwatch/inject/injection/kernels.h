/* ---- maps from handles */

static Pair *place(const Map *map, const void *key) {
  size_t at = (size_t)(((uintptr_t)key * SPREAD) >> 20) & (map->size - 1);
  while (map->pairs[at].key != NULL && map->pairs[at].key != key) at = (at + 1) & (map->size - 1);
  return &map->pairs[at];
}

static const Pair *find(const Map *map, const void *key) {
  if (map->size == 0 || key == NULL) return NULL;
  const Pair *pair = place(map, key);
  return pair->key == key && pair->value != 0 ? pair : NULL;
}

static void put(Map *map, const void *key, uint32_t value, const void *of) {
  if (key == NULL) return;
  if (2 * map->used >= map->size) {
    Map larger = {calloc(map->size ? 2 * map->size : 1024, sizeof(Pair)), 0,
                  map->size ? 2 * map->size : 1024};
    if (larger.pairs == NULL) return;
    for (size_t i = 0; i < map->size; i++)
      if (map->pairs[i].key != NULL && map->pairs[i].value != 0)
        *place(&larger, map->pairs[i].key) = map->pairs[i], larger.used++;
    free(map->pairs);
    *map = larger;
  }
  Pair *pair = place(map, key);
  if (pair->key == NULL) map->used++;
  *pair = (Pair){key, value, of};
}

/* Forgets a module, and the functions that came from it: their handles may be given again. With a
 * library its module in a context goes too, with a context its modules. */
static void forget(const void *module) {
  if (module == NULL) return; /* libraries have no owner */
  if (find(&images, module) != NULL) place(&images, module)->value = 0;
  for (size_t i = 0; i < images.size; i++)
    if (images.pairs[i].owner == module && images.pairs[i].value != 0)
      forget(images.pairs[i].key);
  for (size_t i = 0; i < handles.size; i++)
    if (handles.pairs[i].owner == module) handles.pairs[i].value = 0;
  for (uint32_t i = 1; i < kernel_count; i++)
    if (kernels[i].owner == module) kernels[i].owner = NULL;
  for (uint32_t i = 0; i < build_count; i++) /* their variables are gone */
    builds[i]->dropped |= builds[i]->owner == module;
}

/* ---- kernels and rows */

static uint32_t hash_text(const char *text) {
  uint64_t hash = 14695981039346656037u;
  for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 1099511628211u;
  return (uint32_t)(hash >> 32 ^ hash);
}

static void announce(uint32_t number) {
  Kernel *kernel = &kernels[number];
  if (kernel->announced) return;
  kernel->announced = true;
  tell("kernel %u %u %s", number, kernel->image, kernel->name);
}

/* The kernel of this name and image; image 0 takes the newest of the name. */
static uint32_t kernel_of(const char *name, uint32_t image, bool anew) {
  size_t at = hash_text(name) & 0xFFFF;
  uint32_t found = 0;
  for (size_t tries = 0; name_table[at] != 0 && tries < 0x10000; at = (at + 1) & 0xFFFF, tries++) {
    const uint32_t number = name_table[at];
    if (strcmp(kernels[number].name, name) != 0) continue;
    if (image == 0) found = number > found ? number : found;
    else if (kernels[number].image == image) return number;
  }
  if (found != 0 || !anew || kernel_count >= 0xC000) return found;
  if (kernel_count >= kernel_room) {
    const uint32_t room = kernel_room ? 2 * kernel_room : 256;
    Kernel *larger = realloc(kernels, room * sizeof(Kernel));
    if (larger == NULL) return 0;
    kernels = larger, kernel_room = room;
  }
  kernels[kernel_count] = (Kernel){.name = strdup(name), .image = image, .stored = -1};
  if (kernels[kernel_count].name == NULL) return 0;
  name_table[at] = kernel_count;
  if (hold) announce(kernel_count);
  return kernel_count++;
}

static Row *row_of(uint32_t kernel, uint32_t device, const Shape *shape) {
  uint64_t hash = kernel * SPREAD ^ device;
  const uint32_t *words = (const uint32_t *)shape;
  for (size_t i = 0; i < sizeof(Shape) / 4; i++) hash = (hash ^ words[i]) * SPREAD;
  size_t at = (hash >> 40) & 0xFFFF;
  for (; row_table[at] != 0; at = (at + 1) & 0xFFFF) {
    Row *row = &rows[row_table[at] - 1];
    if (row->kernel == kernel && row->device == device &&
        memcmp(row->grid, shape->grid, sizeof row->grid) == 0 &&
        memcmp(row->block, shape->block, sizeof row->block) == 0 &&
        row->dynamic_shared == shape->dynamic_shared)
      return row;
  }
  if (head->rows >= head->capacity) {
    head->lost_rows++;
    return NULL;
  }
  Row *row = &rows[head->rows];
  *row = (Row){.kernel = kernel, .device = device, .dynamic_shared = shape->dynamic_shared};
  memcpy(row->grid, shape->grid, sizeof row->grid);
  memcpy(row->block, shape->block, sizeof row->block);
  row_table[at] = (uint32_t)++head->rows;
  announce(kernel);
  return row;
}
