extern "C" int kiln_command(int argc, char **argv);

int main(int argc, char **argv) { return kiln_command(argc, argv); }
