# Writes the SQL files of MIGRATIONS into OUTPUT as raw strings.
set(text "#include \"store/migrations.h\"\n\nnamespace slipway::store {\n\nconst std::vector<const char*>& migrations() {\n  static const std::vector<const char*> all{\n")
foreach(file ${MIGRATIONS})
  file(READ ${file} sql)
  string(APPEND text "R\"sql(${sql})sql\",\n")
endforeach()
string(APPEND text "  };\n  return all;\n}\n\n}  // namespace slipway::store\n")
file(WRITE ${OUTPUT} "${text}")
