package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAChatInBeamsLayoutIsRead(t *testing.T) {
	t.Parallel()
	all, err := readBeam("testdata/beam")
	if err != nil || len(all) != 1 || len(all[0].sessions) != 13 || len(all[0].questions) != 10 {
		t.Fatalf("%d dialogues, %v", len(all), err)
	}
	d := all[0]
	second := d.sessions[2][1] // an answer on the second day
	if second.role != "assistant" || second.id != "5" || second.at.Format(time.DateTime) != "2024-03-12 09:01:00" {
		t.Errorf("the sixth message is %+v", second)
	}
	if diff := cmp.Diff([]string{"20", "6"}, d.questions[0].evidence); diff != "" {
		t.Errorf("the evidence of a contradiction (-want +got):\n%s", diff)
	}
}

// Chats of ten million tokens have plans, which contain the batches.
func TestAChatOfPlansIsReadInTheirOrder(t *testing.T) {
	t.Parallel()
	const plan = `[{"batch_number": 1, "turns": [[{"role": "user", "id": 1, "content": "%"}]]}]`
	sessions, err := beamSessions([]byte(`[{"plan-10": ` + strings.Replace(plan, "%", "ten", 1) +
		`, "plan-9": ` + strings.Replace(plan, "%", "nine", 1) + `}]`))
	if err != nil || len(sessions) != 2 || sessions[0][0].text != "nine" || !sessions[1][0].at.IsZero() {
		t.Errorf("%+v, %v", sessions, err)
	}
}

func TestAFolderThatIsNoSetOfBeamSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ chat, questions, want string }{
		{"", "", "no chat.json"},
		{"[]", "{}", "no message"},
		{`[{"role": "user", "content": "hi", "time_anchor": "soon"}]`, "{}", `"soon"`},
		{`[{"role": "user", "content": "hi"}]`, "{}", "no question"},
	} {
		folder := t.TempDir()
		for name, text := range map[string]string{"chat.json": tt.chat, "probing_questions.json": tt.questions} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := readBeam(folder); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("chat %s, questions %s: the error is %v, want one with %s", tt.chat, tt.questions, err, tt.want)
		}
	}
}
