package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/servertest"
)

func TestFolders(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	a := c.made("/v1/folders/", `{"name":"Guides","description":"d","metadata":{"k":1},"embedding":"openai/x",`+
		`"embedding_config":{"embedding_dim":3}}`)
	b := c.made("/v1/sources/", `{"name":"a/b c%","embedding_chunk_size":100}`)
	taken := c.call("POST", "/v1/folders", `{"name":"Guides"}`)
	servertest.CheckProblem(t, taken, 409, map[string]any{"detail": "a folder named 'Guides' already exists; folder " +
		"names are unique"})
	if got := taken.Header().Get("X-Should-Retry"); got != "false" {
		t.Errorf("got X-Should-Retry %q, want false", got)
	}
	for _, w := range []struct{ method, target, body, want string }{
		{"GET", "/v1/folders/count", "", "2"},
		{"GET", "/v1/sources/count/", "", "2"},
		{"GET", "/v1/folders/name/Guides", "", `"` + a + `"`},
		{"GET", "/v1/folders/name/a%2Fb%20c%25", "", `"` + b + `"`},
		{"GET", "/v1/folders/" + a + "/agents", "", `[]`},
		{"GET", "/v1/folders/" + a + "/files", "", `[]`},
		{"GET", "/v1/folders/" + a + "/passages", "", `[]`},
		{"GET", "/v1/folders/metadata", "", fmt.Sprintf(`{"total_sources":2,"total_files":0,"total_size":0,"sources":[`+
			`{"source_id":%q,"source_name":"Guides","file_count":0,"total_size":0,"files":[]},`+
			`{"source_id":%q,"source_name":"a/b c%%","file_count":0,"total_size":0,"files":[]}]}`, a, b)},
	} {
		if got := c.must(w.method, w.target, w.body); got != w.want {
			t.Errorf("%s %s: got %s, want %s", w.method, w.target, got, w.want)
		}
	}
	if got := pick(t, c.must("PATCH", "/v1/folders/"+a, `{"name":null,"description":null,"instructions":"i"}`), "name",
		"description", "instructions", "metadata"); got !=
		`{"description":"d","instructions":"i","metadata":{"k":1},"name":"Guides"}` {
		t.Errorf("changed: got %s", got)
	}
	for query, want := range map[string]int{"": 2, "name=GUIDE": 1, "name=x": 0, "limit=1": 1, "after=" + a: 1,
		"order=desc&after=" + a: 0} {
		if got := namesOf(t, c.must("GET", "/v1/folders/?"+query, "")); len(got) != want {
			t.Errorf("folders with %q: got %q, want %d", query, got, want)
		}
	}
	for query, want := range map[string]int{"": 2, "?limit=1": 1, "?limit=1&after=" + b: 0,
		"?after=" + b + "&order=desc": 1} {
		if got := namesOf(t, c.must("GET", "/v1/sources/"+query, "")); len(got) != want {
			t.Errorf("sources%s: got %q, want %d of them", query, got, want)
		}
	}
	if got := c.must("DELETE", "/v1/folders/"+a, ""); got != "null" {
		t.Errorf("delete: got %s, want null", got)
	}
	for _, target := range []string{"/v1/folders/" + a, "/v1/folders/" + a + "/files", "/v1/folders/" + a + "/agents",
		"/v1/folders/" + a + "/passages",
		"/v1/folders/name/Guides"} {
		servertest.CheckProblem(t, c.call("GET", target, ""), 404, map[string]any{"detail": "there is no such folder"})
	}
	if got := c.call("POST", "/v1/folders", ""); got.Code != 422 || !strings.Contains(got.Text, "required property name") {
		t.Errorf("a folder without a name: got %d %s", got.Code, got.Text)
	}
}

func TestUploads(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"f"}`)
	target := "/v1/folders/" + folder + "/upload"
	name := func(got servertest.Reply) string { return fmt.Sprint(fields(t, got.Text)["file_name"]) }

	first := c.upload(folder, "", "dir/a.txt", "one")
	if first.Code != 200 || name(first) != "a.txt" || first.Header().Get("X-Upload-Result") != "" {
		t.Errorf("upload: got %d %s", first.Code, first.Text)
	}
	if got := c.upload(folder, "", "a.txt", "two"); name(got) != "a_(1).txt" {
		t.Errorf("a second of the name: got %s", got.Text)
	}
	got := c.upload(folder, "?duplicate_handling=skip", "a.txt", "three")
	if got.Header().Get("X-Upload-Result") != "skipped" || fields(t, got.Text)["id"] != fields(t, first.Text)["id"] {
		t.Errorf("skip: got %q %s, want the first", got.Header(), got.Text)
	}
	if got := c.upload(folder, "/?duplicate_handling=error", "a.txt", "four"); got.Code != 400 ||
		!strings.Contains(got.Text, "already exists") {
		t.Errorf("error: got %d %s", got.Code, got.Text)
	}
	if got := c.upload(folder, "?name=b%20c.md", "a.txt", "five"); name(got) != "b c.md" {
		t.Errorf("another name: got %s", got.Text)
	}
	body, mediaType := form("file", "", "text/plain", "six")
	if got := servertest.Send(c, "POST", "/v1/sources/"+folder+"/upload", body, "Content-Type",
		mediaType); got.Code != 200 || name(got) != "upload" {
		t.Errorf("a part without a filename: got %d %s, want the name upload", got.Code, got.Text)
	}

	other, otherType := form("document", "a.txt", "text/plain", "x")
	second, _, _ := strings.Cut(body[strings.Index(body, "Content-Disposition"):], "--")
	boundary := body[:strings.Index(body, "Content-Disposition")]
	two, twoAndMore := boundary+second+body, boundary+strings.Replace(second, `"file"`, `"note"`, 1)+body
	if got := servertest.Send(c, "POST", target+"?name=noted", twoAndMore, "Content-Type", mediaType); got.Code != 200 {
		t.Errorf("a file with another part: got %d %s", got.Code, got.Text)
	}
	for _, r := range []struct {
		name, target, contentType, body string
		status                          int
		detail                          string
	}{
		{"a file that is no text", target, "", string([]byte{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13}), 415,
			"Unsupported file type: image/png (filename: x)"},
		{"a file that is too large", target, "", strings.Repeat("a", maxUpload+1), 413,
			fmt.Sprintf("the file is larger than the limit of %d bytes", maxUpload)},
		{"a body that is much too large", target, "", strings.Repeat("a", maxUpload*3), 413,
			fmt.Sprintf("the file is larger than the limit of %d bytes", maxUpload)},
		{"a body without the part", target, otherType, other, 422, "body.file: expected a part named 'file'"},
		{"two files", target, mediaType, two, 422, "body.file: expected one part named 'file'; send each file in a request"},
		{"two files of which the first is there", target + "?duplicate_handling=skip", mediaType, two, 422,
			"body.file: expected one part named 'file'"},
		{"no body", target, "", "none", 422, "body: expected multipart/form-data with a part named 'file'"},
		{"a body of JSON", target, servertest.JSON, "{}", 422, "body: expected multipart/form-data with a part named 'file'"},
		{"a body that breaks off", target, mediaType, body[:len(body)-40], 400, "receive the upload: the upload broke off"},
		{"a body that breaks off before the part", target, mediaType, body[:20], 422,
			"body.file: expected a part named 'file'"},
		{"an unknown encoding", target + "?encoding=klingon", mediaType, body, 422,
			"query.encoding: the encoding 'klingon' is not known; encodings are named as on the web, such as utf-8"},
		{"an unknown handling", target + "?duplicate_handling=merge", mediaType, body, 422,
			"query.duplicate_handling: expected value to be one of"},
		{"an id of another form", "/v1/folders/folder-1/upload", mediaType, body, 422,
			"path.folder_id: expected string to be source- and"},
		{"a folder that is not there", "/v1/folders/source-123e4567-e89b-42d3-8456-426614174000/upload", mediaType, body, 404,
			"there is no such folder"},
	} {
		if r.contentType == "" && r.body == "none" {
			r.body = ""
		} else if r.contentType == "" {
			r.body, r.contentType = form("file", "x", "text/plain", r.body)
		}
		got := servertest.Send(c, "POST", r.target, r.body, "Content-Type", r.contentType)
		if detail, _ := fields(t, got.Text)["detail"].(string); got.Code != r.status || !strings.HasPrefix(detail, r.detail) {
			t.Errorf("%s: got %d %s, want %d %q…", r.name, got.Code, got.Text, r.status, r.detail)
		}
	}
	if got := c.must("GET", "/v1/folders/metadata", ""); fields(t, got)["total_files"] != 5.0 {
		t.Errorf("what was refused left something: got %s, want 5 files", got)
	}
}

// The parts before the file are bounded too, whatever size the client announces.
func TestUploadsAreBoundedAsAWhole(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"f"}`)
	body, mediaType := form("document", "a.txt", "text/plain", strings.Repeat("a", 3*maxUpload))
	r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/folders/"+folder+"/upload",
		strings.NewReader(body))
	r.Header.Set("Content-Type", mediaType)
	r.ContentLength = -1
	servertest.CheckProblem(t, servertest.Do(c, r), 413, map[string]any{"detail": fmt.Sprintf("The request's body is "+
		"larger than %d bytes", 2*maxUpload)})
}

// If an upload is too large, the client gets a 413 while it is still sending, and not a broken connection.
func TestATooLargeUploadIsAnsweredWhileItComes(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"f"}`)
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body, mediaType := form("file", "a.txt", "text/plain", strings.Repeat("a", 2*maxUpload))
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, err = fmt.Fprintf(conn, "POST /v1/folders/%s/upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
		"%s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s",
		folder, mediaType, 4*maxUpload, body) // the request's body does not end
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 413 ") {
		t.Errorf("got %v, %q; want a 413 and the end of the connection", err, answer)
	}
}

func TestFilesOfAFolderAreOnlyFoundInIt(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	first, second := c.made("/v1/folders", `{"name":"one"}`), c.made("/v1/folders", `{"name":"two"}`)
	file := fields(t, c.upload(first, "", "a.txt", "x").Text)["id"].(string)
	for _, call := range [][2]string{{"GET", "/v1/folders/" + second + "/files/" + file},
		{"DELETE", "/v1/folders/" + second + "/" + file},
		{"GET", "/v1/sources/" + second + "/files/" + file}} {
		if got := c.call(call[0], call[1], ""); got.Code != http.StatusNotFound {
			t.Errorf("%s %s: got %d %s, want 404", call[0], call[1], got.Code, got.Text)
		}
	}
	if got := c.call("DELETE", "/v1/sources/"+first+"/"+file, ""); got.Code != http.StatusNoContent || got.Text != "" {
		t.Errorf("delete: got %d %q, want 204 and nothing", got.Code, got.Text)
	}
	if got := c.call("DELETE", "/v1/folders/"+first+"/"+file, ""); got.Code != http.StatusNotFound {
		t.Errorf("delete again: got %d, want 404", got.Code)
	}
}

func TestFilesAreListedByStage(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	first, second := c.made("/v1/folders", `{"name":"one"}`), c.made("/v1/folders", `{"name":"two"}`)
	read := c.uploaded(first, "read.txt", "a text")
	broken := fields(t, c.upload(second, "", "broken.pdf", "%PDF-1.4 nothing").Text)["id"].(string)
	embedtest.Eventually(t, "the broken file has failed", func() bool {
		return strings.Contains(c.must("GET", "/v1/folders/"+second+"/files/"+broken, ""), `"processing_status":"error"`)
	})
	for target, want := range map[string][]string{
		"/v1/files": {broken, read}, "/v1/files?order=asc": {read, broken}, "/v1/files?status=error": {broken},
		"/v1/files?status=completed": {read}, "/v1/files?status=parsing": nil, "/v1/files?after=" + broken: {read},
		"/v1/folders/" + first + "/files?status=error":     nil,
		"/v1/folders/" + second + "/files?status=error":    {broken},
		"/v1/sources/" + first + "/files?status=completed": {read},
	} {
		var listed []files.File
		if err := json.Unmarshal([]byte(c.must("GET", target, "")), &listed); err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, f := range listed {
			ids = append(ids, f.ID)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%s: got %v, want %v", target, ids, want)
		}
	}
	for file, want := range map[string]int{read: 1, broken: 0} {
		var chunks []files.Passage
		text := c.must("GET", "/v1/folders/"+first+"/passages?file_id="+file, "")
		if err := json.Unmarshal([]byte(text), &chunks); err != nil || len(chunks) != want {
			t.Errorf("the chunks of %s in its folder: got %s, want %d", file, text, want)
		}
	}
	if got := c.call("GET", "/v1/files?status=lost", ""); got.Code != http.StatusUnprocessableEntity {
		t.Errorf("a stage that there is not: got %d %s, want 422", got.Code, got.Text)
	}
}
