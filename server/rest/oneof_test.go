package rest_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/loci-memory/loci/server/servertest"
)

func TestAValueOfNoFormIsToldWhatIsWrongInTheNearest(t *testing.T) {
	t.Parallel()
	h := newNested(t)
	for name, c := range map[string]struct{ body, want string }{
		"no type that any form has": {`{"content":7}`, "body.content: expected string or array of objects. Got: 7"},
		"a list with a wrong item":  {`{"content":[{"text":"a"},"b"]}`, "body.content[1]: expected object. Got: \"b\""},
		"a list with a wrong field": {`{"content":[{"text":7}]}`, "body.content[0].text: expected string. Got: 7"},
	} {
		got := servertest.Send(h, "POST", "/v1/object", c.body)
		var problem struct{ Detail string }
		if err := json.Unmarshal([]byte(got.Text), &problem); err != nil || got.Code != http.StatusUnprocessableEntity ||
			problem.Detail != c.want {
			t.Errorf("%s: got %d %s, want 422 and %s", name, got.Code, got.Text, c.want)
		}
	}
}
