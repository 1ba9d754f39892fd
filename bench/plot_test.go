package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAPlotIsXMLAndShowsEachTurn(t *testing.T) {
	t.Parallel()
	for name, panels := range map[string][]panel{
		"nothing":  nil,
		"one turn": {{title: "a < b & c", window: 100, trigger: 0.9, goal: 0.7, usage: []int{50}}},
		"two panels": {{window: 100, trigger: 0.9, goal: 0.7, usage: []int{10, 90, 100}, compacted: []int{3, 3}},
			{window: 100, trigger: 0.9, goal: 0.7, usage: make([]int, 2000)}},
	} {
		drawing := string(plot(panels))
		for decoder := xml.NewDecoder(strings.NewReader(drawing)); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v in\n%s", name, err, drawing)
			}
		}
		turns := 0
		for _, p := range panels {
			turns += len(p.usage) - 1
		}
		if got := strings.Count(drawing, "L"); got != turns || strings.Contains(drawing, "NaN") {
			t.Errorf("%s: %d lines are drawn, want %d:\n%.500s", name, got, turns, drawing)
		}
	}
}
