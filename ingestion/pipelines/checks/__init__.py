"""What has to hold before a pipeline is registered, beside what its files say."""
