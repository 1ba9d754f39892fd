package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A pinned file stays open while other files are used, until it is unpinned or closed.
func TestAPinnedFileStaysOpen(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"f"}`)
	agent := c.made("/v1/agents", fmt.Sprintf(`{"name":"a","max_files_open":2,"folder_ids":[%q],"open_on_attach":false}`,
		folder))
	files := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d"} {
		files[name] = c.uploaded(folder, name+".txt", "text of "+name)
	}
	path := "/v1/agents/" + agent + "/files/"
	change := func(name, verb string) { c.must("PATCH", path+files[name]+"/"+verb, "") }
	c.must("PATCH", path+"close-all", "")
	open := func(pinned bool) string {
		var list struct {
			Files []struct {
				FileName string `json:"file_name"`
				IsPinned bool   `json:"is_pinned"`
			}
		}
		if err := json.Unmarshal([]byte(c.must("GET", path+"?is_open=true", "")), &list); err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, f := range list.Files {
			if f.IsPinned || !pinned {
				names = append(names, strings.TrimSuffix(strings.TrimPrefix(f.FileName, "f/"), ".txt"))
			}
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	change("a", "open")
	change("a", "pin")
	change("b", "open")
	change("c", "open")
	if open(false) != "a c" || open(true) != "a" {
		t.Errorf("beside a pinned file, %q are open and %q pinned", open(false), open(true))
	}
	change("a", "unpin")
	change("d", "open")
	if got := open(false); got != "c d" {
		t.Errorf("after it is unpinned, %q are open", got)
	}
	change("c", "pin")
	change("c", "close")
	change("c", "open")
	if got := open(true); got != "" {
		t.Errorf("opened again after it was closed, %q is pinned", got)
	}
	for target, want := range map[string]int{path + files["a"] + "/pin": 409, path + files["a"] + "/unpin": 409,
		path + "file-123e4567-e89b-42d3-8456-426614174000/pin": 404} {
		if got := c.call("PATCH", target, ""); got.Code != want {
			t.Errorf("%s: got %d %s, want %d", target, got.Code, got.Text, want)
		}
	}
	page := "/console/agents/" + agent
	if got := c.browse(http.MethodPost, page+"/files/"+files["d"]+"/pin", nil); got.Code != 303 || open(true) != "d" {
		t.Errorf("the console's form: got %d %s, and %q is pinned", got.Code, got.Text, open(true))
	}
	if text := c.browse("GET", page, nil).Text; !strings.Contains(text, `aria-label="Unpin f/d.txt"`) ||
		!strings.Contains(text, `aria-label="Pin f/c.txt"`) {
		t.Errorf("the page shows no pins: %s", text)
	}
}
