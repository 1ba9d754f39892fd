package loop

// PauseAfter is pauseAfter.
var PauseAfter = pauseAfter

// EndsRun reports whether an error ends a run that has already halted the given number of times.
func EndsRun(times int, err error) bool { return Halt{Times: times}.endsRun(err) }

// Unavailable is unavailable.
var Unavailable = unavailable
