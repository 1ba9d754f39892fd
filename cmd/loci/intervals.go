package main

import "time"

const (
	retryEvery    = 5 * time.Second        // between two attempts while the database or an endpoint is away
	progressEvery = 500 * time.Millisecond // between two reads of followed files' progress
	followEvery   = 100 * time.Millisecond // between two reads of followed agents' newest events
)
