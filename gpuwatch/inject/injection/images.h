/* ---- images */

/* What is mapped without room behind it ends the program when it is written to. */
static bool make_room(int fd, size_t size) {
  int problem = EINTR;
  while (problem == EINTR) problem = posix_fallocate(fd, 0, (off_t)size);
  return problem == 0;
}

static bool write_file(const char *name, const void *content, size_t size) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const char *at = content;
  while (size > 0) {
    const ssize_t written = write(fd, at, size);
    if (written <= 0) break;
    at += written, size -= (size_t)written;
  }
  close(fd);
  return size == 0;
}

static size_t elf_bytes(const uint8_t *image) {
  const Elf64_Ehdr *elf = (const void *)image;
  if (elf->e_ident[EI_CLASS] != ELFCLASS64) return 0;
  size_t end = elf->e_shoff + (size_t)elf->e_shnum * elf->e_shentsize;
  const size_t segments = elf->e_phoff + (size_t)elf->e_phnum * elf->e_phentsize;
  if (segments > end) end = segments;
  for (int i = 0; i < elf->e_shnum; i++) {
    const Elf64_Shdr *one =
        (const void *)(image + elf->e_shoff + (size_t)i * elf->e_shentsize);
    if (one->sh_type != SHT_NOBITS && one->sh_offset + one->sh_size > end)
      end = one->sh_offset + one->sh_size;
  }
  return end;
}

/* The entries of a fat binary that hold PTX, behind a header of their own; what is machine code
 * would be megabytes that nothing reads. Layout as in gpuwatch/launch/binary.py. */
static size_t ptx_entries(const uint8_t *fat, uint8_t **found) {
  const uint16_t header = *(const uint16_t *)(fat + 6);
  const uint64_t body = *(const uint64_t *)(fat + 8);
  uint8_t *copy = malloc(header + body);
  if (copy == NULL) return 0;
  memcpy(copy, fat, header);
  size_t used = header;
  for (uint64_t at = 0; at + 64 <= body;) {
    const uint8_t *entry = fat + header + at;
    const uint64_t size = *(const uint32_t *)(entry + 4) + *(const uint64_t *)(entry + 8);
    if (size < 64 || at + size > body) break;
    if (*(const uint16_t *)entry == 1) {
      memcpy(copy + used, entry, size);
      used += size;
    }
    at += size;
  }
  *(uint64_t *)(copy + 8) = used - header;
  *found = copy;
  return used;
}

/* Stores what a module was loaded from; gives the image's number. */
static uint32_t keep_image(const void *image, const char *file) {
  const Pair *made = find(&linked, image);
  if (made != NULL) return made->value;
  const uint32_t number = ++image_count;
  const char *kind = "unknown";
  const void *content = image;
  uint8_t *entries = NULL;
  size_t size = 0;
  if (file != NULL) {
    kind = "file", content = file, size = strlen(file);
  } else if (image != NULL) {
    const uint32_t *words = image;
    if (words[0] == 0x466243B1) memcpy(&content, (const char *)image + 8, sizeof content);
    words = content;
    if (words[0] == 0xBA55ED50) {
      kind = "fatbin", size = ptx_entries(content, &entries), content = entries;
    } else if (memcmp(words, ELFMAG, SELFMAG) == 0) {
      kind = "cubin", size = elf_bytes(content);
    } else {
      kind = "ptx", size = strlen(content);
    }
  }
  char name[64];
  snprintf(name, sizeof name, "%u.%s", number, kind);
  if (size == 0 || !write_file(name, content, size)) kind = "unknown";
  tell("image %u %s %s", number, kind, name);
  free(entries);
  return number;
}
