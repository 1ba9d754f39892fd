package main

import "time"

const (
	retryEvery    = 5 * time.Second        // between two tries of what needs the database or the endpoint back
	progressEvery = 500 * time.Millisecond // between two reads of the progress of followed files
	followEvery   = 100 * time.Millisecond // between two reads of the newest events of followed agents
)
