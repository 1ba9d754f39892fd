package server_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/server/servertest"
)

// One request decides all waiting updates. Earlier decisions stay.
func TestAllUpdatesAreDecidedAtOnce(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	for verb, want := range map[string][2]string{"approve": {"applied", "rejected"}, "reject": {"rejected", "applied"}} {
		agent := c.filed(`,"handover":{"mode":"pending"}`)
		c.session(agent)
		h := c.handOver(agent)
		path := "/v1/agents/" + agent + "/handovers/" + h.ID
		other := map[string]string{"approve": "reject", "reject": "approve"}[verb]
		c.must("POST", path+"/updates/2/"+other, "")
		var requests sync.WaitGroup
		for range 4 {
			requests.Go(func() {
				if got := servertest.Send(c, "POST", path+"/"+verb, ""); got.Code != 200 {
					t.Errorf("%s: got %d %s", verb, got.Code, got.Text)
				}
			})
		}
		requests.Wait()
		var now handedOver
		if err := json.Unmarshal([]byte(c.must("POST", path+"/"+verb, "")), &now); err != nil {
			t.Fatal(err)
		}
		for i, u := range now.Updates {
			if decided := i == 1; now.Status != "done" || decided && u.Status != want[1] || !decided && u.Status != want[0] {
				t.Errorf("%s: update %d is %s in a hand-over that is %s", verb, i+1, u.Status, now.Status)
			}
		}
		tree := c.call("GET", "/v1/agents/"+agent+"/memory-tree", "")
		if written := tree.Code == 200; written != (verb == "approve") {
			t.Errorf("%s: memory files were written: %t (%s)", verb, written, tree.Text)
		}
	}
	if got := c.call("POST", "/v1/agents/"+c.filed(``)+"/handovers/handover-1/approve", ""); got.Code != 404 &&
		got.Code != 422 {
		t.Errorf("a hand-over that does not exist: got %d %s", got.Code, got.Text)
	}
}

// A request to hand over the same messages with different options is refused, and the first hand-over stays.
func TestAHandoverWithOtherOptionsIsRefused(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	agent := c.filed(``)
	c.session(agent)
	path := "/v1/agents/" + agent + "/handover"
	var first, again handedOver
	if err := json.Unmarshal([]byte(c.must("POST", path, `{"pending":true}`)), &first); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`{}`, `{"pending":true}`, `{"carry":true}`, `{"pending":true,"carry":true}`} {
		if err := json.Unmarshal([]byte(c.must("POST", path, body)), &again); err != nil || again.ID != first.ID {
			t.Errorf("%s: got %s (%v), want %s", body, again.ID, err, first.ID)
		}
	}
	for _, body := range []string{`{"pending":false}`, `{"carry":false}`, `{"pending":true,"carry":false}`} {
		if got := c.call("POST", path, body); got.Code != 409 || !strings.Contains(got.Text, first.ID) {
			t.Errorf("%s: got %d %s, want a 409 that names %s", body, got.Code, got.Text, first.ID)
		}
	}
	c.capture(agent, `{"messages":[{"role":"user","content":"And which port?"},
		{"role":"assistant","content":"We decided to use port 9000 there."}]}`)
	if err := json.Unmarshal([]byte(c.must("POST", path, `{"pending":false,"carry":false}`)), &again); err != nil ||
		again.ID == first.ID || again.Status != "done" {
		t.Errorf("of new messages: got %+v (%v)", again, err)
	}
}
