package local

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// defaults returns the settings of a private Postgres: reachable only through its socket, durable, and sized for a
// machine that also does other work.
func defaults(socketDir string) map[string]string {
	return map[string]string{
		"listen_addresses":        "",
		"unix_socket_directories": `"` + strings.ReplaceAll(socketDir, `"`, `""`) + `"`,
		"unix_socket_permissions": "0700",
		"port":                    "5432",
		"max_connections":         "100",
		"shared_buffers":          strconv.FormatInt(sharedBuffers(memory("/"))>>10, 10) + "kB",
		"jit":                     "off", // costs more than it saves for short queries
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		// The reports go to the journal, without the statements, because these contain users' texts.
		"log_destination":         "stderr",
		"logging_collector":       "off",
		"log_line_prefix":         "",
		"log_checkpoints":         "off",
		"log_min_messages":        "warning",
		"log_min_error_statement": "panic",
	}
}

// arguments returns the server's command-line arguments, in a fixed order.
func (s *Server) arguments() []string {
	all := defaults(s.socket.dir)
	maps.Copy(all, s.settings)
	args := []string{"-D", s.home.data()}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		args = append(args, "-c", name+"="+all[name])
	}
	return args
}
