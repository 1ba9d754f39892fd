package agenttest

// Sound is for the tests.
var Sound = sound
