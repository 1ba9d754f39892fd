package local

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// defaults returns the settings of a private Postgres: reachable by its socket only, sized for a machine that does
// other work too, and durable.
func defaults(socketDir string) map[string]string {
	return map[string]string{
		"listen_addresses":        "",
		"unix_socket_directories": `"` + strings.ReplaceAll(socketDir, `"`, `""`) + `"`,
		"unix_socket_permissions": "0700",
		"port":                    "5432",
		"max_connections":         "100",
		"shared_buffers":          strconv.FormatInt(sharedBuffers(memory("/"))>>10, 10) + "kB",
		"jit":                     "off", // it costs more than it saves where queries are short
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		// Reports go to the journal without the statements, which hold users' texts.
		"log_destination":         "stderr",
		"logging_collector":       "off",
		"log_line_prefix":         "",
		"log_checkpoints":         "off",
		"log_min_messages":        "warning",
		"log_min_error_statement": "panic",
	}
}

// arguments returns the arguments of the server, in a fixed order.
func (s *Server) arguments() []string {
	all := defaults(s.socket.dir)
	maps.Copy(all, s.settings)
	args := []string{"-D", s.home.data()}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		args = append(args, "-c", name+"="+all[name])
	}
	return args
}
