package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server/servertest"
)

// sendForm sends a form with files as a browser without JavaScript does.
func (c *client) sendForm(target, token string, contents map[string]string, headers ...string) servertest.Reply {
	c.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	err := form.WriteField("form", token)
	for _, name := range []string{"", "a.txt", "b.bin", "c.txt"} { // in this order
		text, ok := contents[name]
		if err != nil || !ok {
			continue
		}
		part, failed := form.CreateFormFile("file", name)
		if err = failed; err == nil {
			_, err = part.Write([]byte(text))
		}
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return servertest.Send(c, http.MethodPost, target, body.String(), append(headers,
		"Cookie", "loci_form="+formCookie+"; loci_session="+c.signedIn(), "Sec-Fetch-Site", "same-origin",
		"Content-Type", form.FormDataContentType())...)
}

// A browser without JavaScript uploads files with a form. The answer names the first refused file, and the files before
// it stay.
func TestTheConsoleTakesFilesWithoutScripts(t *testing.T) {
	t.Parallel()
	c := newClient(t).as("acme")
	folder := c.made("/v1/folders", `{"name":"f"}`)
	target := "/console/folders/" + folder + "/send"
	page := c.browse("GET", "/console/folders/"+folder, nil).Text
	form := page[strings.Index(page, "<noscript>"):strings.Index(page, "</noscript>")]
	token := strings.Index(form, `name="form"`)
	if token < 0 || token > strings.Index(form, `type="file"`) || !strings.Contains(form, `action="`+target+`"`) {
		t.Errorf("the form without scripts is %s", form)
	}
	names := func() string {
		var list []files.File
		if err := json.Unmarshal([]byte(c.must("GET", "/v1/folders/"+folder+"/files?order=asc", "")), &list); err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, f := range list {
			all = append(all, fmt.Sprintf("%s %d", f.Name, f.SizeBytes))
		}
		return strings.Join(all, ", ")
	}
	for _, row := range []struct {
		name, token string
		sent        map[string]string
		status      int
		text, left  string
	}{
		{"someone who guesses", "guess", map[string]string{"a.txt": "one"}, 403, "does not come from a page", ""},
		{"nothing that is chosen", formCookie, map[string]string{"": ""}, 422, "Choose at least one.", ""},
		{"two files", formCookie, map[string]string{"a.txt": "one", "c.txt": "three"}, 303, "", "a.txt 3, c.txt 5"},
		{"a file that is refused between two", formCookie,
			map[string]string{"a.txt": "again", "b.bin": "\x00\x01\x02\x03", "c.txt": "never"}, 415,
			"1 file before it are stored", "a.txt 3, c.txt 5, a_(1).txt 5"},
	} {
		got := c.sendForm(target, row.token, row.sent)
		if got.Code != row.status || !strings.Contains(got.Text, row.text) || names() != row.left {
			t.Errorf("%s: got %d %.600s, and the folder has %q; want %d with %q and %q", row.name, got.Code, got.Text, names(),
				row.status, row.text, row.left)
		}
	}
	got := c.sendForm(target, "", map[string]string{"c.txt": "again"}, "X-Loci-Form", formCookie)
	if got.Code != 303 || !strings.HasSuffix(names(), ", c_(1).txt 5") {
		t.Errorf("with the token as a script sends it: got %d %.600s, and the folder has %q", got.Code, got.Text, names())
	}
}
