package summary_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall"
)

// extract returns the summary of a dialogue without a model, in at most budget tokens. The dialogue gets a long answer,
// because no summary is longer than what it replaces.
func extract(t *testing.T, d *dialogue, budget int, s plan.Settings) string {
	t.Helper()
	d.assistant(strings.Repeat("All is well so far, as it was before. ", 60))
	made, err := summary.Summarize(t.Context(), clip.Evicted{Budget: budget, Messages: d.messages}, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made.Text
}

// read adds a call and its result.
func (d *dialogue) read(tool, returns string) {
	id := fmt.Sprint("call-", len(d.messages))
	call := called(id, "{}")
	call.Name = tool
	d.add(recall.Assistant, call).add(recall.Tool, result(id, returns))
}

// If the room is short, requests that only name the next thing to look at leave before what holds longer.
func TestAnsweredRequestsLeaveFirst(t *testing.T) {
	t.Parallel()
	lasting := []string{"Please keep the ferry times in UTC.", "Nobody renames the pier table.",
		"We settled on weekly exports.", "It is still unclear who pays the pilot."}
	for name, next := range map[string]string{"in English": "Next: src/quay%d/mooring.go.",
		"in German": "Weiter mit src/quay%d/mooring.go.", "in Chinese": "接下来看 src/quay%d/mooring.go。"} {
		d := &dialogue{}
		for n := range 40 {
			said := fmt.Sprintf(next, n)
			if n%10 == 1 {
				said += "\n" + lasting[n/10]
			}
			d.user(said)
			d.add(recall.Assistant, recall.Part{Type: recall.Text, Text: "It looks fine."})
		}
		text := extract(t, d, 200, plan.Defaults())
		for _, want := range lasting {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is lost in\n%s", name, want, text)
			}
		}
	}
}

// A line about an error is found in many languages.
func TestErrorsOfManyLanguagesAreErrors(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"Fehler: Der Hafen ist zu", "Erreur : port fermé", "Error: puerto cerrado",
		"Errore: porto chiuso", "Erro: porto fechado", "Fout: haven dicht", "Błąd: port zamknięty", "Ошибка: порт закрыт",
		"Hata: liman kapalı", "エラー: 港は閉鎖中", "错误：港口关闭", "오류: 항구 폐쇄", "ข้อผิดพลาด: ท่าเรือปิด", "خطأ: الميناء مغلق",
		"त्रुटि: बंदरगाह बंद", "10:02 FEHLER: Der Hafen ist zu"} {
		d := (&dialogue{}).user("Is the port open?")
		d.read("probe", "tried twice\n"+line)
		if text := extract(t, d, 500, plan.Defaults()); !strings.Contains(text, "Errors:\n- [14] probe: "+line) {
			t.Errorf("%q is no error in\n%s", line, text)
		}
	}
}

// An error is quoted with its place in the program, not in a library.
func TestErrorsAreQuotedWithTheirPlace(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"panic: assignment to entry in nil map (/src/harbour/berth.go:41)": "panic: assignment to entry in nil map\n\n" +
			"goroutine 7 [running]:\nruntime.mapassign\n\t/usr/local/go/src/runtime/map.go:578 +0x3c\n" +
			"harbour.(*Berths).Set(...)\n\t/src/harbour/berth.go:41 +0x1d\n",
		`ValueError: no such berth (File "/srv/berths.py", line 77)`: "Traceback (most recent call last):\n" +
			"  File \"/srv/main.py\", line 9, in <module>\n    run()\n  File \"/srv/berths.py\", line 77, in run\n" +
			"    raise ValueError(\"no such berth\")\nValueError: no such berth\n",
		"TypeError: berth is undefined (/app/berths.js:12)": "TypeError: berth is undefined\n" +
			"    at node:internal/run.js:5:1\n    at set (/app/berths.js:12:7)\n",
		"berth.c:7:2: error: expected ';'": "berth.c:7:2: error: expected ';'\n    3 | int x\n",
	} {
		d := (&dialogue{}).user("Run it.")
		d.read("bash", text)
		if got := extract(t, d, 500, plan.Defaults()); !strings.Contains(got, "\n- [14] bash: "+want+"\n") {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
}

// A short result with fields, or with rows of a table, stands on one line, so that no value loses its name.
func TestRecordsStayOnOneLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ferry: Tern\nseats: 212\ncrew: 9\n":       "ferry: Tern; seats: 212; crew: 9",
		"Tide\nHigh: 4.1 m\nLow: 0.6 m\n":          "Tide; High: 4.1 m; Low: 0.6 m",
		"pier   depth   free\nnorth  6.2 m   3\n":  "pier depth free; north 6.2 m 3",
		"The pier is\nold: it has\n3 cracks now\n": "",
	} {
		d := (&dialogue{}).user("How is it?")
		d.read("probe", text)
		d.add(recall.Assistant, recall.Part{Type: recall.Text, Text: "I see."})
		got := extract(t, d, 500, plan.Defaults())
		line := "result of probe: " + cmp.Or(want, strings.Join(strings.Fields(text), " "))
		if joined := strings.Contains(got, line); joined != (want != "") {
			t.Errorf("%q: %t\n%s", text, joined, got)
		}
	}
}

// Lines that differ only in their numbers tell different facts. A focus keeps all of them.
func TestLinesWithOtherNumbersStay(t *testing.T) {
	t.Parallel()
	d := (&dialogue{}).user("The port of billing is 8443.").user("The port of billing is 8447 on staging.")
	d.read("probe", "tank 1 holds 340 litres\ntank 2 holds 355 litres")
	for n := range 9 {
		d.user(fmt.Sprintf("The boiler in cellar %d runs at %d bar.", n, 40+n))
	}
	for range 30 {
		d.user("The weather is mild, and the harbour is quiet.")
	}
	text := extract(t, d, 700, plan.Defaults())
	for _, want := range []string{"8443", "8447", "340 litres", "355 litres"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is lost in\n%s", want, text)
		}
	}
	for n := range 9 { // rather than chatter
		if want := fmt.Sprintf("cellar %d runs at %d bar", n, 40+n); !strings.Contains(text, want) {
			t.Errorf("%q is lost in\n%s", want, text)
		}
	}
	s := plan.Defaults()
	s.Focus = "the boilers"
	text = extract(t, d, 700, s)
	for n := range 9 {
		if want := fmt.Sprintf("cellar %d runs at %d bar", n, 40+n); !strings.Contains(text, want) {
			t.Errorf("with a focus %q is lost in\n%s", want, text)
		}
	}
}

// Lines with other names stay, too: two rules for two files are two rules. So does the whole of a line that was said in
// part before.
func TestLinesWithOtherNamesStay(t *testing.T) {
	t.Parallel()
	first := (&dialogue{}).user("Never edit the generated file src/schema_gen.go by hand.").
		assistant("I keep the missing weights of each station apart and mark them in wei")
	second := (&dialogue{}).user("Never edit the generated file src/wire_gen.go by hand.").
		assistant("I keep the missing weights of each station apart and mark them in weight_imputed.")
	var previous *clip.Summary
	for _, d := range []*dialogue{first, second, {}} {
		for n := range 30 {
			d.user(fmt.Sprintf("The weather is mild today, and harbour %d is quiet.", n))
		}
		d.assistant(strings.Repeat("All is well so far, as it was before. ", 60))
		made, err := summary.Summarize(t.Context(), clip.Evicted{Budget: 700, Messages: d.messages, Previous: previous},
			plan.Defaults(), nil)
		if err != nil {
			t.Fatal(err)
		}
		previous = &made
	}
	for _, want := range []string{"schema_gen.go by hand", "wire_gen.go by hand", "mark them in weight_imputed"} {
		if !strings.Contains(previous.Text, want) {
			t.Errorf("%q is lost in\n%s", want, previous.Text)
		}
	}
}

// Lists of files are bounded: the newest files are named, older ones are counted, over many compactions.
func TestListsOfFilesAreBounded(t *testing.T) {
	t.Parallel()
	format := &prose.Format{Files: true, Sections: []prose.FormatSection{{Heading: "## Goal", From: []string{"requests"}}}}
	var previous *clip.Summary
	for n := range 12 {
		d := (&dialogue{}).user("Go on.")
		for file := range 10 {
			d.read("read_file", "package quay")
			call := &d.messages[len(d.messages)-2].Content[0]
			call.Input = fmt.Sprintf(`{"path":"src/quay%02d/mooring%d.go"}`, n, file)
		}
		made := extracted(t, clip.Evicted{Budget: 1_000, Messages: d.messages, Previous: previous,
			Making: prose.Making{Format: format}})
		previous = &made
	}
	_, list, _ := strings.Cut(previous.Text, "<read-files>\n")
	list, _, _ = strings.Cut(list, "\n</read-files>")
	lines := strings.Split(list, "\n")
	last := len(lines) - 1
	if want := fmt.Sprintf("… and %d more", 120-last); last < 4 || !strings.HasPrefix(lines[last], want) {
		t.Errorf("no line %q in\n%s", want, list)
	}
	newest := slices.ContainsFunc(lines, func(l string) bool { return l == "src/quay11/mooring9.go" })
	if !newest || strings.Contains(list, "quay00") {
		t.Errorf("not the newest files:\n%s", list)
	}
}

// Lines of code in an answer are no findings.
func TestCodeInAnswersIsNoFinding(t *testing.T) {
	t.Parallel()
	d := (&dialogue{}).user("How do I moor?")
	d.assistant("Call Moor. We agreed on quay 7.\n```go\nfor i := range quays {\n\tgo moor(quays[i])\n}\n```\n" +
		"The tide is at 14:20.")
	text := extract(t, d, 400, plan.Defaults())
	found, _, _ := strings.Cut(text, "Last state:")
	if strings.Contains(found, "range quays") || !strings.Contains(found, "quay 7") || !strings.Contains(found, "14:20") {
		t.Error(text)
	}
}

// In a small window, the parts that a format appends leave most of the summary to what holds longest.
func TestAppendedPartsLeaveRoom(t *testing.T) {
	t.Parallel()
	format := &prose.Format{RecentTurns: 8, Files: true, UserMessages: true,
		Sections: []prose.FormatSection{{Heading: "## Rules", From: []string{"told"}}}}
	d := &dialogue{}
	rules := []string{"Nobody renames the pier table.", "Never moor at quay 9 before noon.",
		"Always call Ms. Ferreira first.",
		"I prefer nautical miles.", "Ships above 200 m must not enter the old basin."}
	for n := range 60 {
		said := fmt.Sprintf("Can you look at src/quay%d/mooring.go and at src/quay%d/tide.go, and say what they do?", n, n)
		if n%12 == 3 {
			said = rules[n/12]
		}
		d.user(said).assistant(fmt.Sprintf("Both of quay %d declare a type, and a loop over all ships that wait there.", n))
	}
	text := extracted(t, clip.Evicted{Budget: 700, Messages: d.messages, Making: prose.Making{Format: format}}).Text
	for _, want := range rules {
		if !strings.Contains(text, want) {
			t.Errorf("%q is lost in\n%s", want, text)
		}
	}
}
