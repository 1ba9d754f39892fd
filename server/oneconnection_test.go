package server_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
)

// No transaction of a run or a capture waits for a second connection. Otherwise all of them could wait for each other.
func TestRunsAndCapturesNeedOneConnection(t *testing.T) {
	t.Parallel()
	pool, err := db.Connect(t.Context(), dbtest.SharedURL(t)+"&pool_max_conns=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	r := runner{client: serverClientOn(t, pool, dbtest.NewOrg(t, pool)), model: modeltest.New(t)}
	r.server.Loop = newLoop(t, r.server, r.model.URL)
	r.client = r.again()
	m := r.model
	r.agent = r.made("/v1/agents", askingAgent)
	r.asks()
	m.Says(modeltest.Answer{Text: "Noted."})
	if got := r.call("POST", r.path(), approvals("o", approveI, resultW)); got.Code != 200 {
		t.Errorf("approve the calls of a run: got %d %s", got.Code, got.Text)
	}
	r.asks()
	got := r.call("POST", "/v1/agents/"+r.agent+"/messages/capture", `{"messages":[{"role":"user","content":"Go on"}]}`)
	if got.Code != 200 || !strings.Contains(got.Text, `"w"`) {
		t.Errorf("a capture that leaves the calls of a run: got %d %s", got.Code, got.Text)
	}
}
