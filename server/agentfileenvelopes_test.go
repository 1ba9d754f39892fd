package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/recall"
)

// A server of Letta lists and sends only results that are in its envelope: in the content of a message, in its
// tool_returns and in the client's answers to calls. The message's name is the tool's. An import takes the results out
// of the envelopes again.
func TestAnExportWritesResultsAsLettaReadsThem(t *testing.T) {
	t.Parallel()
	r := newRunner(t, strings.Replace(askingAgent, `{`, `{"timezone":"Asia/Tokyo",`, 1))
	search := modeltest.Call{ID: "s", Name: "conversation_search", Arguments: `{"query":5}`}
	r.model.Says(modeltest.Answer{Calls: []modeltest.Call{noteCall(), {ID: "w", Name: "weather", Arguments: `{}`},
		search}}, modeltest.Answer{Text: "Well."})
	r.send(`{"input":"Hello",` + clientWeather + `}`)
	json19 := strings.Replace(resultW, `"Rain"`, `"{\"degrees\": 19, \"sky\": \"<grey>\"}"`, 1)
	r.send(approvals("o", denyI, json19))
	listed := results(r.list("/v1/agents/" + r.agent + "/messages?limit=100"))
	exported := r.must("GET", "/v1/agents/"+r.agent+"/export", "")
	type toolReturn struct {
		CallID   string `json:"tool_call_id"`
		Status   string `json:"status"`
		Response string `json:"func_response"`
	}
	var file struct {
		Agents []struct {
			Messages []struct {
				Name        string                        `json:"name"`
				Role        string                        `json:"role"`
				Content     []struct{ Type, Text string } `json:"content"`
				ToolReturns []toolReturn                  `json:"tool_returns"`
				Answers     []toolReturn                  `json:"approvals"`
			} `json:"messages"`
		} `json:"agents"`
	}
	if err := json.Unmarshal([]byte(exported), &file); err != nil {
		t.Fatal(err)
	}
	read, tools := map[string]string{}, map[string]string{"i": "memory_insert", "w": "weather", "s": "conversation_search"}
	for _, m := range file.Agents[0].Messages {
		if len(m.ToolReturns) > 0 && m.Name != tools[m.ToolReturns[0].CallID] {
			t.Errorf("the result of %s is named %q", m.ToolReturns[0].CallID, m.Name)
		}
		for i, result := range append(m.ToolReturns, m.Answers...) {
			if result.Response == "" { // a denial
				continue
			}
			if i < len(m.Content) && m.Content[i].Text != result.Response {
				t.Errorf("the content is %q, its result %q", m.Content[i].Text, result.Response)
			}
			var envelope map[string]string
			if err := json.Unmarshal([]byte(result.Response), &envelope); err != nil || len(envelope) != 3 {
				t.Errorf("%s is no envelope: %v", result.Response, err)
			}
			if want := map[string]string{"success": "OK", "error": "Failed"}[result.Status]; envelope["status"] != want {
				t.Errorf("%s: got %s in the envelope, want %s", result.Status, envelope["status"], want)
			}
			if _, err := time.Parse(recall.EnvelopeTime, envelope["time"]); err != nil ||
				!strings.HasSuffix(envelope["time"], "JST+0900") {
				t.Errorf("the time is %s: %v", envelope["time"], err)
			}
			read[result.CallID] = envelope["message"]
		}
	}
	ids, _ := r.imported(exported)
	again := results(r.list("/v1/agents/" + ids[0] + "/messages?limit=100"))
	if fmt.Sprint(read) != fmt.Sprint(listed) || fmt.Sprint(again) != fmt.Sprint(listed) || len(listed) != 3 {
		t.Errorf("listed %q, exported %q, listed after the import %q", listed, read, again)
	}
}

// results maps the id of each call in a list of messages to its result.
func results(items []map[string]any) map[string]string {
	all := map[string]string{}
	for _, item := range items {
		if item["message_type"] == "tool_return_message" {
			all[fmt.Sprint(item["tool_call_id"])] = fmt.Sprint(item["tool_return"])
		}
	}
	return all
}
