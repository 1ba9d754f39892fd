package clip_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/compaction/clip"
)

var stringLiteral = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

func FuzzStringLiterals(f *testing.F) {
	for _, text := range []string{``, `{}`, `{"a":"b"}`, `{"a":"\"","b\\":"\\\\","":["",""]}`, `"é\u00e9\\\""`,
		`[1,"x\n",null]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		var want [][2]int
		for _, at := range stringLiteral.FindAllStringIndex(text, -1) {
			want = append(want, [2]int{at[0], at[1]})
		}
		if diff := cmp.Diff(want, clip.StringLiterals(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	})
}
