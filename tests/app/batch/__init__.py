"""Tests of app/batch."""
