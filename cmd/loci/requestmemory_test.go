package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/tenant/apikey"
)

// largeBytes is the size of the large bodies.
const largeBytes = 200 << 20

// maxGrowthBytes is how much resident memory one request may add to a server.
const maxGrowthBytes = 150 << 20

// large is a body of largeBytes: a beginning, and then a repeated piece.
type large struct{ name, contentType, begin, piece string }

// send writes the body, with its length or in chunks, until the connection is closed.
func (l large) send(conn net.Conn, head string, chunked bool) {
	begin, piece := []byte(l.begin), []byte(strings.Repeat(l.piece, 1+(64<<10)/len(l.piece)))
	frame := "Content-Length: " + strconv.Itoa(largeBytes)
	if chunked {
		frame = "Transfer-Encoding: chunked"
	}
	_, err := fmt.Fprintf(conn, "%s%s\r\nContent-Type: %s\r\n\r\n", head, frame, l.contentType)
	write := func(p []byte) {
		if err == nil && chunked {
			_, err = fmt.Fprintf(conn, "%x\r\n%s\r\n", len(p), p)
		} else if err == nil {
			_, err = conn.Write(p)
		}
	}
	write(begin)
	for left := largeBytes - len(begin); left > 0 && err == nil; left -= len(piece) {
		write(piece[:min(left, len(piece))])
	}
	if chunked && err == nil {
		_, _ = io.WriteString(conn, "0\r\n\r\n") // the server may have closed the connection
	}
}

// operation is an operation of the document that takes a body.
type operation struct {
	method, path string
	types        map[string][]string // the names of the body's fields, by content type
}

// bodyOperations returns the operations of a document that take bodies.
func bodyOperations(t *testing.T, document []byte) (list []operation) {
	t.Helper()
	type schema struct {
		Ref        string         `json:"$ref"`
		Properties map[string]any `json:"properties"`
	}
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct{ Schema schema }
			} `json:"requestBody"`
		}
		Components struct{ Schemas map[string]schema }
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if method == "get" || method == "delete" {
				continue
			}
			found := operation{strings.ToUpper(method), path, map[string][]string{"application/json": {"x"}}}
			for contentType, body := range op.RequestBody.Content {
				s := body.Schema
				if s.Ref != "" {
					s = doc.Components.Schemas[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]]
				}
				for name := range s.Properties {
					found.types[contentType] = append(found.types[contentType], name)
				}
				slices.Sort(found.types[contentType])
			}
			list = append(list, found)
		}
	}
	slices.SortFunc(list, func(a, b operation) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	return list
}

// bodies returns large bodies for an operation: for each field, a text, a list with one long item, and a list of many
// short ones.
func (o operation) bodies() (list []large) {
	shapes := func(name string) []large {
		return []large{{begin: `{"` + name + `":"`, piece: "x"}, {begin: `{"` + name + `":[{"text":"`, piece: "x"},
			{begin: `{"` + name + `":[`, piece: `{"text":"y","content":"z","role":"user"},`}}
	}
	for contentType, names := range o.types {
		if contentType != "multipart/form-data" {
			for _, name := range names {
				for _, l := range shapes(name) {
					list = append(list, large{name, contentType, l.begin, l.piece})
				}
			}
			continue
		}
		for _, name := range append(names, "unknown") {
			contents := []large{{begin: "", piece: "x"}}
			if name == "file" {
				for _, field := range []string{"agents", "messages", "blocks", "passages", "x"} {
					contents = append(contents, shapes(field)...)
				}
			}
			for _, l := range contents {
				head := fmt.Sprintf("--b\r\nContent-Disposition: form-data; name=%q; filename=\"a.txt\"\r\n\r\n", name)
				list = append(list, large{name, "multipart/form-data; boundary=b", head + l.begin, l.piece})
			}
		}
		list = append(list, large{"parts", "multipart/form-data; boundary=b", "--b\r\n",
			"Content-Disposition: form-data; name=\"x\"\r\n\r\n\r\n--b\r\n"},
			large{"headers", "multipart/form-data; boundary=b", "--b\r\n", "X: y\r\n"})
	}
	return list
}

// A body of 200 MB never takes more than 150 MB of a server's memory, in any operation, and each request is answered.
func TestNoRequestTakesMuchMemory(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	pool, org := dbtest.Org(t)
	key, _ := keyOf(t, pool, apikey.NewKey{In: org, Name: "test", Scopes: []string{apikey.Write, apikey.Admin}})
	p := &serverProcess{t: t, tmp: t.TempDir(), log: newLines(),
		args: []string{"serve", "--addr=127.0.0.1:0", "--database-url=" + sharedURL(t)}}
	t.Cleanup(p.kill)
	p.start()
	client := &program{t: t, base: p.url(), key: key, log: p.log}
	ids := map[string]string{"conversation_id": "default"}
	for name, path := range map[string]string{"agent_id": "/v1/agents", "archive_id": "/v1/archives",
		"folder_id": "/v1/folders"} {
		ids[name] = call[identified](client, "POST", path, map[string]any{"name": "large"}).ID
	}
	_, document := client.send("GET", "/openapi.json", nil)
	statuses, mostGrowth := map[int]int{}, int64(0)
	for _, o := range bodyOperations(t, document) {
		path := parameters.ReplaceAllStringFunc(o.path, func(name string) string {
			return strings.TrimSuffix(ids[strings.Trim(name, "{}")]+"/", "/")
		})
		head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n", o.method, path, key)
		for i, body := range o.bodies() {
			chunked := i%2 == 1
			before := p.peak(t)
			status := p.sendLarge(t, body, head, chunked)
			grown := p.resident(t, "VmHWM") - before
			if statuses[status]++; status == 0 || status >= 500 || grown > maxGrowthBytes {
				t.Errorf("%s %s, %s, %q, %q, chunked: %t: got %d, and %d MB more memory", o.method, path, body.contentType,
					body.name, body.begin[max(0, len(body.begin)-40):], chunked, status, grown>>20)
			}
			mostGrowth = max(mostGrowth, grown)
		}
	}
	all := 0
	for _, n := range statuses {
		all += n
	}
	t.Logf("%d bodies took at most %d MB of memory; the answers by their status: %v", all, mostGrowth>>20, statuses)
	if all < 1000 || statuses[http.StatusRequestEntityTooLarge] < all/2 {
		t.Errorf("of %d bodies %d ended at a limit", all, statuses[http.StatusRequestEntityTooLarge])
	}
}

var parameters = regexp.MustCompile(`\{[^}]*\}`)

// sendLarge sends a body, and returns the answer's status; 0 if there is none.
func (p *serverProcess) sendLarge(t *testing.T, body large, head string, chunked bool) int {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(p.url(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		body.send(conn, head, chunked)
	}()
	defer func() {
		_ = conn.Close()
		<-sent
	}()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// peak resets the server's peak memory, and returns its current memory.
func (p *serverProcess) peak(t *testing.T) int64 {
	t.Helper()
	if err := os.WriteFile(p.proc("clear_refs"), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	return p.resident(t, "VmRSS")
}

// resident returns a number of bytes from the server's /proc/PID/status.
func (p *serverProcess) resident(t *testing.T, name string) int64 {
	t.Helper()
	text, err := os.ReadFile(p.proc("status"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("no %s in %s", name, text)
	}
	kilobytes, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}

func (p *serverProcess) proc(file string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file)
}
