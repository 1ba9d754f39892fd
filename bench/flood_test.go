package main

import "testing"

// Refused requests are not work. A flood's note counts them separately.
func TestAFloodsNoteCountsRefusalsApart(t *testing.T) {
	t.Parallel()
	got := sum([]floodTally{
		{Seconds: 2, Accepted: map[string]int64{"append": 30, "upload": 4}, Refused: map[string]int64{"append": 50}},
		{Seconds: 2, Accepted: map[string]int64{"append": 10}, Refused: map[string]int64{"append": 30, "upload": 40}},
	}).String()
	if want := "flood of 24 clients: append 10/s, upload 1/s, refused 30/s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	list := make([]float64, 40)
	for i := range list {
		list[i] = float64(40 - i)
	}
	for q, want := range map[float64]float64{0.5: 20.5, 0.95: 38, 1: 40} {
		if got := quantile(list, q); got != want {
			t.Errorf("quantile %g: got %g, want %g", q, got, want)
		}
	}
}
