package loop

// PauseAfter is pauseAfter.
var PauseAfter = pauseAfter
