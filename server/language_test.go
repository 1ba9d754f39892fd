package server_test

import (
	"strings"
	"testing"
)

// Passages and files say in which language they are, and a request may set it. An unknown language is a 422.
func TestTextsHaveALanguage(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	archive := "/v1/archives/" + c.made("/v1/archives", `{"name":"a"}`) + "/passages"
	for body, want := range map[string]string{
		`{"text":"Die Rechnungen der Server wurden nach dem Ausfall geprüft."}`: `"language":"de","language_given":false`,
		`{"text":"Rechnungen","language":"de"}`:                                 `"language":"de","language_given":true`,
	} {
		if got := c.must("POST", archive, body); !strings.Contains(got, want) {
			t.Errorf("%s: got %s", body, got)
		}
	}
	if got := c.call("POST", archive, `{"text":"x","language":"xx"}`); got.Code != 422 ||
		!strings.Contains(got.Text, "tr, zh") {
		t.Errorf("an unknown language of a passage: got %d %s", got.Code, got.Text)
	}
	agent := c.made("/v1/agents", `{"name":"a"}`)
	made := c.must("POST", "/v1/agents/"+agent+"/archival-memory", `{"text":"Rechnung","language":"nl"}`)
	if !strings.Contains(made, `"language":"nl"`) {
		t.Errorf("of an agent: got %s", made)
	}
	folder := c.made("/v1/folders", `{"name":"f"}`)
	file := "/v1/folders/" + folder + "/files/" + c.uploaded(folder, "a.txt", "Faktury za czynsz wysłano księgowości.\n")
	if got := c.must("GET", file, ""); !strings.Contains(got, `"language":"pl","language_given":false`) {
		t.Errorf("a file: got %s", got)
	}
	if got := c.upload(folder, "?language=sv", "b.txt", "Rapport\n"); got.Code != 200 ||
		!strings.Contains(got.Text, `"language":"sv","language_given":true`) {
		t.Errorf("a file with a language: got %d %s", got.Code, got.Text)
	}
	if got := c.upload(folder, "?language=xx", "c.txt", "Rapport\n"); got.Code != 422 {
		t.Errorf("an unknown language of a file: got %d %s", got.Code, got.Text)
	}
}
