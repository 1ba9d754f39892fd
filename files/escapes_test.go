package files_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/files"
)

// Characters that JSON or source code writes with escapes are found by words and by grep, beside their raw form.
func TestEscapedCharactersAreFound(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("docs")
	fx.upload(folder, "a.json", `{"city": "M\u00FCnchen", "greeting": "\u041f\u0440\u0438\u0432\u0435\u0442 `+
		`\ud83d\ude00"}`+"\n")
	fx.upload(folder, "b.js", "let x = 'caf\\u00e9 \\u{1F600}';\n")
	fx.upload(folder, "c.txt", "a path C:\\users\\unit and no more\n")
	agent := fx.agentWith(folder)
	for query, want := range map[string]string{"münchen": "a.json", "привет": "a.json", "café": "b.js", "unit": "c.txt"} {
		got, err := fx.Search(t.Context(), fx.org, files.Of(agent), files.Query{Text: query, Limit: 1})
		if err != nil || len(got.Hits) != 1 || !strings.HasSuffix(got.Hits[0].FileName, want) {
			t.Errorf("search for %q: got %+v, %v, want %s", query, got.Hits, err, want)
		}
	}
}
