package transcript_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/db/dbtest/scale"
)

// Read accepts any file or refuses it with an existing line. What it accepts has messages, and reads the same again.
func FuzzRead(f *testing.F) {
	samples, err := filepath.Glob("testdata/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range samples {
		if info, err := os.Stat(path); err != nil || info.IsDir() || filepath.Ext(path) == ".golden" {
			continue
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
		f.Add(raw[:len(raw)/2])
		f.Add(bytes.ReplaceAll(raw, []byte(`"`), []byte(`'`)))
	}
	f.Add([]byte(`{"agents":[]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		whole, _, wholeErr := transcript.ReadWhole("x", bytes.NewReader(raw))
		all, err := transcript.Read("x", bytes.NewReader(raw))
		if (wholeErr == nil) != (len(whole) > 0) || err == nil && wholeErr != nil {
			t.Errorf("got %d sessions with what is broken left out, %v; without: %v", len(whole), wholeErr, err)
		}
		if err != nil {
			refused, ok := errors.AsType[*transcript.Error](err)
			if !ok || refused.Why == "" || refused.Line < 1 || refused.Line > 1+bytes.Count(raw, []byte("\n")) {
				t.Errorf("refused without a line of the file: %v", err)
			}
			return
		}
		again, err := transcript.Read("x", bytes.NewReader(raw))
		if err != nil || len(all) == 0 || len(again) != len(all) {
			t.Fatalf("got %d sessions, then %d, %v", len(all), len(again), err)
		}
		for i, session := range all {
			if len(session.Drafts) == 0 || told(session) != told(again[i]) {
				t.Errorf("session %d has %d messages, or others when it is read again", i, len(session.Drafts))
			}
			messages, _ := session.Wire()
			if len(messages) != len(session.Drafts) {
				t.Errorf("session %d has %d messages of %d to be imported", i, len(messages), len(session.Drafts))
			}
		}
	})
}

// Entries with parents that form a loop are read once each.
func TestParentsInALoopAreRead(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"Claude Code": `{"type":"user","uuid":"a","parentUuid":"b","sessionId":"s","message":{"role":"user","content":"one"}}
{"type":"assistant","uuid":"b","parentUuid":"a","sessionId":"s","message":{"role":"assistant","content":"two"}}`,
		"a sub-agent of Claude Code": `{"type":"user","uuid":"a","parentUuid":"b","isSidechain":true,"sessionId":"s",
"message":{"role":"user","content":"one"}}
{"type":"assistant","uuid":"b","parentUuid":"a","isSidechain":true,"sessionId":"s",
"message":{"role":"assistant","content":"two"}}`,
		"a loop before the last entry": `{"type":"user","uuid":"b","parentUuid":"a","sessionId":"s",
"message":{"role":"user","content":"one"}}
{"type":"assistant","uuid":"a","parentUuid":"b","sessionId":"s",
"message":{"role":"assistant","content":"two"}}
{"type":"user","uuid":"c","parentUuid":"a","sessionId":"s","message":{"role":"user","content":"three"}}`,
		"Pi": `{"type":"session","version":3,"id":"s"}
{"type":"message","id":"a","parentId":"b","message":{"role":"user","content":"one"}}
{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[{"type":"text","text":"two"}]}}`,
	} {
		all, err := transcript.Read(name, strings.NewReader(text))
		if err != nil || len(all) != 1 {
			t.Errorf("%s: got %d sessions, %v", name, len(all), err)
			continue
		}
		if got := told(all[0]); strings.Count(got, "one") != 1 || strings.Count(got, "two") != 1 {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// repeated reads a text several times over, so that the test holds only one copy of it.
func repeated(text string, times int) io.Reader {
	readers := make([]io.Reader, times)
	for i := range readers {
		readers[i] = strings.NewReader(text)
	}
	return io.MultiReader(readers...)
}

// A line of 100 MB is read in a few times as much memory.
func TestAVeryLongLineIsRead(t *testing.T) {
	scale.Long(t)
	const mega = 1 << 20
	in := io.MultiReader(strings.NewReader(`{"role":"user","content":"`), repeated(strings.Repeat("x", mega), 100),
		strings.NewReader("\"}\n{\"role\":\"assistant\",\"content\":\"ok\"}\n"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	all, err := transcript.Read("long.jsonl", in)
	runtime.ReadMemStats(&after)
	if err != nil || len(all) != 1 || len(all[0].Drafts) != 2 || len(all[0].Drafts[0].Content[0].Text) != 100*mega {
		t.Fatalf("got %d sessions, %v", len(all), err)
	}
	if taken := (after.TotalAlloc - before.TotalAlloc) / mega; taken > 2_000 {
		t.Errorf("reading 100 MB took %d MB", taken)
	} else {
		t.Logf("reading 100 MB took %d MB", taken)
	}
}
