package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// steering is text with control sequences, and the text that a terminal gets in its place.
const (
	steering = "a\x1b[2J\x1b]0;title\ab\rc\x9b31m\u009b31m\u202ed\x00e\x7f\tü\u2028\u2029\U000E0041\n"
	steered  = "a\uFFFD[2J\uFFFD]0;title\uFFFDb\uFFFDc\uFFFD31m\uFFFD31m\uFFFDd\uFFFDe\uFFFD\tü\uFFFD\uFFFD\uFFFD\n"
)

func TestWritesToTerminalsAreTame(t *testing.T) {
	t.Parallel()
	for size := 1; size <= len(steering); size++ {
		var out bytes.Buffer
		w := &tameWriter{to: &out}
		for rest := []byte(steering); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			if n, err := w.Write(rest[:min(size, len(rest))]); err != nil || n != min(size, len(rest)) {
				t.Fatalf("%d bytes at once: wrote %d, %v", size, n, err)
			}
		}
		if got := out.String(); got != steered {
			t.Errorf("%d bytes at once: got %q, want %q", size, got, steered)
		}
	}
}

// openTerminal returns both ends of a terminal that shows lines as they are written.
func openTerminal(t *testing.T) (screen, tty *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	settings, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	settings.Oflag &^= unix.OPOST
	if err := unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, settings); err != nil {
		t.Fatal(err)
	}
	return screen, tty
}

// Neither texts from a server nor arguments can control the reader's terminal, whether in results, errors or notes.
func TestCommandsDoNotSteerTerminals(t *testing.T) {
	t.Parallel()
	file, folder := "file-00000000-0000-0000-0000-000000000000", "source-00000000-0000-0000-0000-000000000000"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		status := "success"
		if strings.Contains(r.URL.Path, "dead") {
			status = "error"
		}
		if strings.Contains(r.URL.Path, "/tools/") {
			_ = json.NewEncoder(w).Encode(map[string]string{"func_return": steering, "status": status})
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = json.NewEncoder(w).Encode(map[string]any{"content": steering, "id": file, "left_out": []string{steering}})
	}))
	t.Cleanup(server.Close)
	agent, broken := "agent-00000000-0000-0000-0000-000000000000", "agent-00000000-0000-0000-0000-00000000dead"
	for _, args := range [][]string{{"grep", agent, "a"}, {"grep", broken, "a"},
		{"files", "text", folder, file}, {"agents", "import", "terminal_linux_test.go"}, {steering}} {
		screen, tty := openTerminal(t)
		code := run(t.Context(), append(args, "--addr", server.URL), tty, tty)
		if err := tty.Close(); err != nil {
			t.Fatal(err)
		}
		shown := make([]byte, 4096)
		n, _ := screen.Read(shown)
		got := string(shown[:n])
		if !strings.Contains(got, "[2J") || strings.ContainsAny(got, "\x1b\a\r\x00\x7f\u009b\u202e\u2028\u2029\U000E0041") {
			t.Errorf("%v ended with %d, and showed %q", args, code, got)
		}
	}
}
