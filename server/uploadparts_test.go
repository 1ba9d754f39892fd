package server_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/servertest"
)

// A part of the body may name the encoding of the file, as the parameter does. It stands before the file.
func TestAnEncodingMayBeAPartOfTheBody(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"f"}`)
	const text, pdf = "text", "%PDF-1.7 1 0 obj"
	for claim, tt := range map[string]struct {
		query  string
		parts  []string // names and values
		status int
		detail string
	}{
		"before the file":         {"", []string{"encoding", "koi8-r", "file", text}, 200, ""},
		"as the parameter":        {"?encoding=koi8-r", []string{"encoding", "koi8-r", "file", text}, 200, ""},
		"of a file that has none": {"", []string{"encoding", "koi8-r", "file", pdf}, 400, "which says its encoding itself"},
		"unknown": {"", []string{"encoding", "klingon", "file", text}, 422,
			"body.encoding: the encoding 'klingon'"},
		"another than the parameter": {"?encoding=utf-8", []string{"encoding", "koi8-r", "file", text}, 422,
			`the parameter says "utf-8" and the part "koi8-r"`},
		"behind the file": {"", []string{"file", text, "encoding", "koi8-r"}, 422,
			"expected the part 'encoding' before the part 'file'"},
	} {
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		for i := 0; i < len(tt.parts); i += 2 {
			create := func(name string) (io.Writer, error) { return w.CreateFormField(name) }
			if tt.parts[i] == "file" {
				create = func(name string) (io.Writer, error) { return w.CreateFormFile(name, claim) }
			}
			part, err := create(tt.parts[i])
			if err == nil {
				_, err = part.Write([]byte(tt.parts[i+1]))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got := servertest.Send(c, "POST", "/v1/folders/"+folder+"/upload"+tt.query, body.String(), "Content-Type",
			w.FormDataContentType())
		if got.Code != tt.status || !strings.Contains(got.Text, jsonText(tt.detail)) {
			t.Errorf("%s: got %d %s, want %d %q", claim, got.Code, got.Text, tt.status, tt.detail)
		}
	}
	if got := c.must("GET", "/v1/folders/metadata", ""); fields(t, got)["total_files"] != 2.0 {
		t.Errorf("what was refused left something: got %s, want 2 files", got)
	}
}

// jsonText returns a text as it stands within a text in JSON.
func jsonText(text string) string { return strings.ReplaceAll(text, `"`, `\"`) }
