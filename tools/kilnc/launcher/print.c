/* Prints tiles as text, as every device of Kiln does: `program P: LABEL = [[1, 2], [3, 4]]`. */

struct line {
  char *text;
  size_t used, room;
};

/* Appends; what finds no memory is left out. */
__attribute__((format(printf, 2, 3))) static void append(struct line *line, const char *format, ...) {
  va_list values;
  char part[512];
  size_t length;
  va_start(values, format);
  length = (size_t)vsnprintf(part, sizeof part, format, values);
  va_end(values);
  if (length >= sizeof part)
    length = sizeof part - 1;
  if (line->used + length > line->room) {
    char *const text = realloc(line->text, 2 * line->room + sizeof part);
    if (!text)
      return;
    line->text = text;
    line->room = 2 * line->room + sizeof part;
  }
  memcpy(line->text + line->used, part, length);
  line->used += length;
}

/* The value of a float of `bytes` bytes, `mantissa` bits of which are its mantissa. */
static double widened(uint64_t bits, int bytes, int mantissa) {
  const int exponents = 8 * bytes - 1 - mantissa, bias = (1 << (exponents - 1)) - 1;
  const uint64_t sign = bits >> (8 * bytes - 1) << 63, field = bits >> mantissa & ((1u << exponents) - 1);
  const uint64_t fraction = bits & (((uint64_t)1 << mantissa) - 1);
  const int is_last = field == (1u << exponents) - 1;
  uint64_t wide;
  double value;
  if (bytes == 8)
    wide = bits;
  else if (is_last && mantissa == 3) /* f8e4m3 has no infinity, and one NaN */
    wide = fraction == 7 ? sign | (uint64_t)0x7ff8 << 48 : sign | (uint64_t)(15 - bias + 1023) << 52 | fraction << 49;
  else if (is_last)
    wide = sign | (uint64_t)0x7ff << 52 | fraction << (52 - mantissa);
  else if (field)
    wide = sign | (field - (uint64_t)bias + 1023) << 52 | fraction << (52 - mantissa);
  else { /* a subnormal number or zero: a multiple of the least one */
    wide = (uint64_t)(1 - bias - mantissa + 1023) << 52;
    memcpy(&value, &wide, sizeof value);
    return (double)fraction * value * (sign ? -1.0 : 1.0);
  }
  memcpy(&value, &wide, sizeof value);
  return value;
}

/* The value of a scale (f8e8m0), whose byte is an exponent or NaN. */
static double widened_scale(uint64_t bits) {
  const uint64_t wide = bits == 255 ? (uint64_t)0x7ff8 << 48 : (bits - 127 + 1023) << 52;
  double value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

/* The fewest digits that tell a number from its neighbours, in plain notation from 1e-4 to 1e16. */
static void append_real(struct line *line, double value, int is_double) {
  char text[40], digits[24];
  int count = 0, exponent, precision = 0;
  if (value != value || value - value != 0) {
    append(line, "%s%s", __builtin_signbit(value) ? "-" : "", value != value ? "nan" : "inf");
    return;
  }
  do
    snprintf(text, sizeof text, "%.*e", precision, value);
  while (++precision < 17 && (is_double ? strtod(text, NULL) : (double)strtof(text, NULL)) != value);
  exponent = atoi(strchr(text, 'e') + 1);
  for (const char *at = text; *at != 'e'; ++at)
    if (*at >= '0' && *at <= '9')
      digits[count++] = *at;
  append(line, "%s", __builtin_signbit(value) ? "-" : "");
  if (exponent < -4 || exponent >= 16)
    append(line, "%c%s%.*se%c%02d", digits[0], count > 1 ? "." : "", count - 1, digits + 1, exponent < 0 ? '-' : '+',
           abs(exponent));
  else if (exponent < 0)
    append(line, "0.%.*s%.*s", -exponent - 1, "000", count, digits);
  else if (exponent >= count - 1)
    append(line, "%.*s%.*s", count, digits, exponent - count + 1, "0000000000000000");
  else
    append(line, "%.*s.%.*s", exponent + 1, digits, count - exponent - 1, digits + exponent + 1);
}

static void append_element(struct line *line, const char *place, int type) {
  const int bytes = element_types[type].bytes;
  uint64_t bits = 0;
  memcpy(&bits, place, (size_t)bytes);
  switch (element_types[type].kind) {
  case 'f':
    append_real(line, widened(bits, bytes, element_types[type].mantissa), bytes == 8);
    break;
  case 'p': { /* two floats of 4 bits */
    static const double sizes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    append(line, "(");
    append_real(line, bits & 8 ? -sizes[bits & 7] : sizes[bits & 7], 0);
    append(line, ", ");
    append_real(line, bits & 128 ? -sizes[bits >> 4 & 7] : sizes[bits >> 4 & 7], 0);
    append(line, ")");
    break;
  }
  case 's':
    append_real(line, widened_scale(bits), 0);
    break;
  case 'i': /* with its sign */
    append(line, "%" PRId64, (int64_t)(bits << (64 - 8 * bytes)) >> (64 - 8 * bytes));
    break;
  default:
    append(line, "%" PRIu64, bits);
  }
}

static const char *append_elements(struct line *line, const char *place, int type, const int64_t *extents,
                                   int64_t rank) {
  if (rank == 0) {
    append_element(line, place, type);
    return place + element_types[type].bytes;
  }
  append(line, "[");
  for (int64_t i = 0; i < extents[0]; ++i) {
    append(line, "%s", i ? ", " : "");
    place = append_elements(line, place, type, extents + 1, rank - 1);
  }
  append(line, "]");
  return place;
}

__attribute__((visibility("hidden"))) void PRINT(const char *label, int64_t program, int32_t type, int64_t rank,
                                                 const int64_t *extents, const void *data);
void PRINT(const char *label, int64_t program, int32_t type, int64_t rank, const int64_t *extents, const void *data) {
  struct line line = {0};
  append(&line, "program %" PRId64 ": %s = ", program, label);
  append_elements(&line, data, type, extents, rank);
  append(&line, "\n");
  fwrite(line.text, 1, line.used, stdout); /* in one piece */
  free(line.text);
}
