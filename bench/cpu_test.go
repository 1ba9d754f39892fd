package main

import "testing"

func TestAStatFileIsReadAfterTheProgramsName(t *testing.T) {
	t.Parallel()
	const fields = " S 7 1 1 0 -1 4194304 100 0 0 0 250 50 30 20 20 0 1 0 100"
	want := processStat{parent: 7, own: 3, all: 3.5}
	for _, text := range []string{"42 (loci)" + fields, "42 (a ) b (c)" + fields} {
		if got := parseStat([]byte(text)); got != want {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
	if got := parseStat([]byte("42 (loci) S 7")); got != (processStat{}) {
		t.Errorf("a file cut off: got %+v, want nothing", got)
	}
}
